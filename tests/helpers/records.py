"""What every record of an experiment can do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rntk.papers.experiments.record import Record


def check_record_and_picture(record) -> None:
    """A record survives JSON, arrays as arrays, and draws on the axes it is given."""
    plain = json.loads(json.dumps(record.to_dict()))
    assert plain == record.to_dict()
    if isinstance(record, Record):
        again = type(record).from_dict(plain)
        for name, value in vars(record).items():
            assert type(getattr(again, name)) is type(value), name
            np.testing.assert_array_equal(getattr(again, name), value)
    pyplot = pytest.importorskip("matplotlib.pyplot", reason='pictures need matplotlib: pip install "rntk[plot]"')
    figure, ax = pyplot.subplots()
    assert record.plot(ax) is ax
    assert ax.get_xlabel() and ax.get_ylabel() and ax.get_legend() is not None
    pyplot.close(figure)
