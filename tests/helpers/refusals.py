"""How the command line says no."""

from __future__ import annotations


def assert_one_line_refusal(result, *words: str) -> None:
    assert result.exit_code == 2, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)  # no traceback
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert result.stderr.startswith("rntk: ")
    for word in words:
        assert word in result.stderr, result.stderr
