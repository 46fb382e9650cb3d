"""The application: its commands, its version, and how it reports a mistake."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from .. import __version__
from .cell import cell
from .demo import demo
from .explore import explore
from .fit import fit
from .gram import gram
from .info import info
from .predict import predict
from .refusal import one_line
from .reproduce import reproduce
from .score import score

#: What Typer raises for wrong arguments. Recent versions carry a copy of click inside, so `click.UsageError` may be
#: another class; the base of the one Typer exports is right for all of them.
UsageError: Any = typer.BadParameter.__base__


class OneLineErrors(TyperGroup):
    """A group of commands that reports wrong arguments in one line instead of a panel."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            result = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.BadParameter as error:
            _stop(error.format_message(), 2)
        except UsageError as error:
            _stop(f"{error.format_message()} (rntk --help lists what there is)", 2)
        except typer.Abort:
            _stop("interrupted", 130)
        # Without standalone mode, a command that ends by typer.Exit returns its code.
        sys.exit(result if isinstance(result, int) else 0)


def _stop(reason: str, code: int) -> NoReturn:
    typer.echo(f"rntk: {one_line(reason)}", err=True)
    sys.exit(code)


app = typer.Typer(
    name="rntk",
    cls=OneLineErrors,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (fit, predict, score, gram, cell, explore, reproduce, demo, info):
    app.command()(command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"rntk {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Exact kernels of infinitely wide recurrent networks."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
