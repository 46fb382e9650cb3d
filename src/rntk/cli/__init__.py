"""The command line: `rntk demo` and `rntk info`.

In go arguments, out comes text for people. Each command is one small module that asks the library and prints; what
it prints is computed elsewhere. Mistakes of the user end in one line and exit code 2, never in a traceback.
"""

from __future__ import annotations

from .app import app

__all__ = ["app"]
