"""What the papers print, to compare with."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files


@cache
def rntk_table_2() -> dict[str, dict[str, float]]:
    """Table 2 of the RNTK paper: accuracy in percent by data set (56 of the UCR archive) and classifier (7)."""
    text = files(__package__).joinpath("rntk_table_2.json").read_text("utf-8")
    return dict(json.loads(text)["accuracy"])
