"""How a command says no: one line on standard error, exit code 2, no traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer


def one_line(message: str) -> str:
    """A message of several lines, lists included, as one."""
    message = re.sub(r":\s*\n\s*- ", ": ", message)
    message = re.sub(r"\n\s*- ", "; ", message)
    message = re.sub(r"\n(?=What to try)", ". ", message)
    return " ".join(in_options(message).split())


def in_options(message: str) -> str:
    """A message of the library in the words of the command line: label='first' is --label first."""
    words = r"\b(label|format|missing|decimal)=('[^']*'(?:, '[^']*')*(?: or '[^']*')?)"
    message = re.sub(words, lambda match: f"--{match[1]} {match[2].replace(chr(39), '')}", message)
    return message.replace("header=True", "--header").replace("header=False", "--no-header")


def refuse(reason: str) -> NoReturn:
    """Stop with the reason."""
    typer.echo(f"rntk: {one_line(reason)}", err=True)
    raise typer.Exit(2)


@contextmanager
def refusing(trouble: str = "") -> Iterator[None]:
    """Turn what the library says about unusable input into a refusal; `trouble` says what could not be done.

    To be wrapped around the one call that the user's input goes into: a ValueError from elsewhere is a bug, and is to
    end in a traceback.
    """
    from ..errors import KernelOverflowError

    try:
        yield
    except (ValueError, KernelOverflowError) as error:
        refuse(f"{trouble}: {error}" if trouble else str(error))
