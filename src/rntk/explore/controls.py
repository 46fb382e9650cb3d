"""The controls of a kernel: a slider and a box for each sigma, lists for the rest, all showing one `Settings`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import CheckboxGroup, Select, Slider, TextInput

from .settings import ACTIVATIONS, MOST_DEPTH, READOUTS, SCALES, Settings
from .style import CONTROLS


class Controls:
    """Widgets that show `settings` and call `changed` when a person moves one of them.

    Attributes
    ----------
    root : Column
        The widgets, to be laid out.
    settings : Settings
        What they show.
    """

    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        self.settings = settings
        self._changed = changed
        self._quiet = False
        looks: dict[str, Any] = {"stylesheets": [CONTROLS]}
        self.activation = Select(title="activation", options=list(ACTIVATIONS), width=110, **looks)
        self.readout = Select(title="readout", options=list(READOUTS), width=85, **looks)
        self.depth = Select(title="depth", options=[str(k + 1) for k in range(MOST_DEPTH)], width=65, **looks)
        self.normalize = CheckboxGroup(labels=["scale the diagonal to 1 (normalize)"], **looks)
        self.sliders: dict[str, Slider] = {}
        self.boxes: dict[str, TextInput] = {}
        for name, scale in SCALES.items():
            self.sliders[name] = Slider(
                start=scale.low,
                end=scale.high,
                step=scale.step,
                value=scale.low,
                title=f"{scale.symbol}, {scale.meaning}",
                show_value=False,
                width=200,
                name=name,
                margin=(5, 5, 2, 5),
                **looks,
            )
            self.boxes[name] = TextInput(width=80, name=f"{name} box", **looks)
            self.sliders[name].on_change("value", self._on_slider(name))
            self.boxes[name].on_change("value", self._on_box(name))
        for select, name, kind in (
            (self.activation, "activation", str),
            (self.readout, "readout", str),
            (self.depth, "depth", int),
        ):
            select.on_change("value", self._on_select(name, kind))
        self.normalize.on_change("active", lambda attr, old, new: self._take(normalize=bool(new)))
        self.show(settings)
        self.root = column(
            row(self.activation, self.readout, self.depth),
            *(row(self.sliders[name], self.boxes[name]) for name in SCALES),
            self.normalize,
        )

    def show(self, settings: Settings, moved: Any = None) -> None:
        """Make all widgets but `moved` show `settings`, and call nobody: moving what a person holds makes it jump."""
        self.settings = settings
        self._quiet = True
        try:
            for name, scale in SCALES.items():
                value = getattr(settings, name)
                if self.sliders[name] is not moved:
                    self.sliders[name].value = scale.position(value)
                self.boxes[name].value = repr(value)
            self.activation.value, self.readout.value = settings.activation, settings.readout
            self.depth.value = str(settings.depth)
            self.normalize.active = [0] if settings.normalize else []
        finally:
            self._quiet = False

    def _take(self, moved: Any = None, **changes: Any) -> None:
        if self._quiet:
            return
        settings = self.settings.change(**changes)
        if settings != self.settings:
            self.show(settings, moved)
            self._changed()

    def _on_slider(self, name: str) -> Callable[[str, float, float], None]:
        def moved(attr: str, old: float, new: float) -> None:
            self._take(self.sliders[name], **{name: SCALES[name].value(new)})

        return moved

    def _on_box(self, name: str) -> Callable[[str, str, str], None]:
        def typed(attr: str, old: str, new: str) -> None:
            try:
                value = float(new)
            except ValueError:
                value = math.nan
            if math.isfinite(value) and value >= 0:
                self._take(**{name: value})
            if not self._quiet:
                self.show(self.settings)  # as it is written, or what was there before if it is no deviation

        return typed

    def _on_select(self, name: str, kind: Callable[[str], Any]) -> Callable[[str, str, str], None]:
        return lambda attr, old, new: self._take(**{name: kind(new)})
