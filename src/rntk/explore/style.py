"""How the page looks: sizes of text, spaces, colours."""

from __future__ import annotations

from ..plot import COLOURS

BLUE, VERMILION = COLOURS[0], COLOURS[1]
INK, QUIET, PAPER = "#1f2933", "#5f6b7a", "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

#: Every figure.
THEME = {
    "attrs": {
        "Plot": {"outline_line_color": None, "border_fill_color": PAPER},
        "Axis": {
            "axis_label_text_font": FONT,
            "axis_label_text_font_size": "13px",
            "axis_label_text_font_style": "normal",
            "axis_label_text_color": INK,
            "major_label_text_font": FONT,
            "major_label_text_font_size": "12px",
            "major_label_text_color": INK,
            "axis_line_color": "#9aa5b1",
            "major_tick_line_color": "#9aa5b1",
            "minor_tick_line_color": None,
        },
        "Grid": {"grid_line_color": "#e4e7eb"},
        "Title": {"text_font": FONT, "text_font_size": "14px", "text_font_style": "bold", "text_color": INK},
        "BaseColorBar": {
            "major_label_text_font": FONT,
            "major_label_text_font_size": "12px",
            "background_fill_color": None,
        },
    }
}

#: Controls and texts: each is a shadow root of its own, so each gets the rules it needs.
CONTROLS = f":host {{ font-family: {FONT}; font-size: 13px; color: {INK}; }} label {{ font-size: 13px; }}"
PANEL = ":host { background: #f5f7fa; padding: 14px 16px; overflow-x: hidden; overflow-y: auto; }"
NAME = f"{CONTROLS} b {{ font-size: 18px; overflow-wrap: anywhere; }} span {{ color: {QUIET}; }}"
NOTE = f":host {{ font-family: {FONT}; font-size: 12px; color: {QUIET}; line-height: 1.35; }}"
LINE = (
    f":host {{ font-size: 12px; color: {INK}; }} "
    "pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; padding: 8px; "
    "box-sizing: border-box; width: 100%; background: #fff; border: 1px solid #cbd2d9; border-radius: 4px; "
    "font-family: 'DejaVu Sans Mono', monospace; }"
)
SCORE = (
    f":host {{ font-family: {FONT}; color: {INK}; font-size: 13px; line-height: 1.3; }} "
    f"b {{ font-size: 26px; color: {BLUE}; margin: 0 6px; font-variant-numeric: tabular-nums; }} "
    f"span {{ color: {QUIET}; }}"
)
TROUBLE = (
    f":host {{ font-family: {FONT}; font-size: 13px; color: {INK}; background: #fdf0e7; "
    f"border-left: 4px solid {VERMILION}; padding: 8px 12px; line-height: 1.35; overflow-wrap: anywhere; }}"
)
