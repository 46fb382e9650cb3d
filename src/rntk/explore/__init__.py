"""`rntk explore`: a page on this machine where a kernel's settings are moved and their effect is seen at once.

In go a `Subject` (sequences, with labels or without) and a port; out comes a page in the browser. Imports run one way:
`settings` (what can be moved) and `data` (what is looked at) <- `budget` (how much of it in time) <- `state` (settings
to everything shown, without Bokeh) <- `page` (the Bokeh document) <- `server` (who may reach it: this machine only).

Needs Bokeh, which only `page` and `server` load: pip install "rntk[explore]".
"""

from __future__ import annotations

from .data import Subject, cylinder_bell_funnel
from .settings import Settings
from .state import Picture, Trouble, look, suggested

__all__ = ["Picture", "Settings", "Subject", "Trouble", "cylinder_bell_funnel", "look", "suggested"]
