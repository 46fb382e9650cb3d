"""`python -m rntk.cli`: the command line where scripts are not on the path."""

from . import app

app()
