"""The command line: `rntk fit`, `predict`, `score`, `gram`, `cell`, `explore`, `reproduce`, `demo` and `info`.

In go arguments, out comes text for people, or with `--json` one object for programs; bars of progress go to standard
error. Each command is one small module that asks the library and prints; what it prints is computed elsewhere.
Mistakes of the user end in one line and exit code 2, never in a traceback; what ends in one, exit code 1, is a bug.
"""

from __future__ import annotations

from .app import app

__all__ = ["app"]
