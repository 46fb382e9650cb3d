"""Figures of a study, drawn from its results: PNG and SVG in its folder, or inside a page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

from .study import NotRunError, Results, Study

#: Dots per inch of PNG files.
DPI = 144


def draw(study: Study, results: Results) -> dict[str, Any]:
    """Figures by name; empty where results for them are missing, or matplotlib is."""
    try:
        import matplotlib
    except ImportError:
        return {}
    with matplotlib.rc_context({"figure.max_open_warning": 0}):
        try:
            return study.figures(results)
        except NotRunError:
            return {}


def write_figures(study: Study, results: Results, folder: Path) -> list[str]:
    """Write every figure as PNG and SVG; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, figure in draw(study, results).items():
        for suffix in ("png", "svg"):
            (folder / f"{name}.{suffix}").write_bytes(_bytes_of(figure, suffix, study.name))
        _close(figure)
        names.append(name)
    return names


def embed(study: Study, results: Results) -> dict[str, str]:
    """Figures by name as addresses that hold the picture itself."""
    found = {}
    for name, figure in draw(study, results).items():
        found[name] = "data:image/svg+xml;base64," + base64.b64encode(_bytes_of(figure, "svg", study.name)).decode()
        _close(figure)
    return found


def _bytes_of(figure: Any, suffix: str, salt: str) -> bytes:
    import matplotlib

    file = io.BytesIO()
    # No date and no random identifiers: the same results give the same file.
    metadata = {"Date": None} if suffix == "svg" else {}
    with matplotlib.rc_context({"svg.hashsalt": f"rntk {salt}"}):
        figure.savefig(file, format=suffix, dpi=DPI, metadata=metadata, bbox_inches="tight")
    return file.getvalue()


def _close(figure: Any) -> None:
    from matplotlib import pyplot

    pyplot.close(figure)
