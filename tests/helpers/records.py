"""What every study that ran can do."""

from __future__ import annotations

import pytest

from rntk.papers.run import Run


def check_pictures(found: Run, count: int = 1) -> None:
    """A study draws so many figures of its results, each with labels and a legend."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason='pictures need matplotlib: pip install "rntk[plot]"')
    figures = found.figures()
    assert len(figures) == count
    for figure in figures.values():
        for ax in figure.axes:
            assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend() is not None
        pyplot.close(figure)


def verdicts(found: Run) -> dict[str, str]:
    """What became of the claims, by their keys."""
    return {row["key"]: row["verdict"] for row in found.verdicts}
