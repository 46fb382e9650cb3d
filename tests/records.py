"""What every record of an experiment can do."""

from __future__ import annotations

import json

import pytest


def check_record_and_picture(record) -> None:
    """A record survives JSON, and draws on the axes it is given."""
    assert json.loads(json.dumps(record.to_dict())) == record.to_dict()
    pyplot = pytest.importorskip("matplotlib.pyplot", reason='pictures need matplotlib: pip install "rntk[plot]"')
    figure, ax = pyplot.subplots()
    assert record.plot(ax) is ax
    assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend() is not None
    pyplot.close(figure)
