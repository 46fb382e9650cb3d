"""Pictures: matplotlib axes in and out, labels in words, colours that colour-blind readers tell apart.

Needs matplotlib, which is loaded only here and only when something is drawn: pip install "rntk[plot]".
"""

from __future__ import annotations

from .axes import COLOURS, axes_or_new

__all__ = ["COLOURS", "axes_or_new"]
