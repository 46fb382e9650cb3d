"""The page: controls on the left, pictures on the right, and the way from one to the other.

A change computes a picture somewhere else (`Run`), so that the page stays alive meanwhile; changes that arrive during a
computation are answered by one more, with the newest settings. Whatever goes wrong ends in a message on the page. Text
that comes from files is escaped wherever a browser would read it as HTML.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from html import escape
from typing import Any

from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import Button, CheckboxGroup, CustomJS, Div, FileInput, PreText
from bokeh.themes import Theme

from .controls import Controls
from .data import Subject
from .figures import CurveFigure, GramFigure, ScoreFigure
from .settings import Settings
from .state import Picture, Score, Trouble, look, read_upload, suggested
from .style import CONTROLS, LINE, NAME, NOTE, PANEL, SCORE, THEME, TROUBLE

#: Does the first somewhere else, and hands what it gives to the second, here.
Run = Callable[[Callable[[], Any], Callable[[Any], None]], None]

#: Milliseconds after which a computation that isn't back is announced.
PATIENCE = 400
#: Pixels of the controls, of two of them side by side, and of the space beside the pictures.
WIDTH, HALF, PANEL_WIDTH, MARGIN = 290, 140, 346, 12
PROMISE = "Suggest finds the flattest sensitivity on these sequences."
COPY = """
const done = () => { button.label = "Copied"; setTimeout(() => { button.label = "Copy" }, 1500) };
const by_hand = () => {
  const area = document.createElement("textarea");
  area.value = line.text;
  document.body.appendChild(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  done();
};
if (navigator.clipboard) navigator.clipboard.writeText(line.text).then(done, by_hand); else by_hand();
"""
GONE = """
trouble.text = "rntk explore has ended. Start it again and open the address that it prints.";
trouble.visible = true;
"""


class Page:
    """One browser tab: a subject, its settings, and what is shown of them.

    Parameters
    ----------
    subject : Subject
        What is looked at.
    run : Run
        Where computations go.
    n_jobs : int, optional
        Threads of a computation.

    Attributes
    ----------
    root : Row
        Everything, laid out.
    shown : Picture or None
        The picture on the page, None before the first.
    """

    def __init__(self, subject: Subject, run: Run, n_jobs: int | None = None) -> None:
        self.subject, self._run, self._n_jobs = subject, run, n_jobs
        self.shown: Picture | None = None
        self._wanted: set[str] = set()
        self._busy, self._begun = False, 0
        self._document: Document | None = None
        self.controls = Controls(Settings(), self.refresh)
        self.curve, self.gram, self.score_by_ridge = CurveFigure(), GramFigure(), ScoreFigure()
        looks: dict[str, Any] = {"stylesheets": [CONTROLS]}
        self.name = Div(name="data", width=WIDTH, stylesheets=[NAME])
        self.file = FileInput(accept=".tsv,.txt,.ts,.arff,.csv", width=WIDTH, **looks)
        self.thorough = CheckboxGroup(labels=["more sequences and steps (slower)"], **looks)
        self.suggest = Button(label="Suggest", name="suggest", button_type="primary", width=HALF, **looks)
        self.reset = Button(label="Reset", name="reset", width=HALF, **looks)
        self.reason = Div(name="reason", text=PROMISE, width=WIDTH, stylesheets=[NOTE])
        self.line = PreText(name="line", width=WIDTH, stylesheets=[LINE])
        self.copy = Button(label="Copy", name="copy", width=HALF, **looks)
        self.score = Div(name="score", sizing_mode="stretch_width", stylesheets=[SCORE])
        self.status = Div(name="status", sizing_mode="stretch_width", stylesheets=[NOTE])
        self.trouble = Div(name="trouble", visible=False, sizing_mode="stretch_width", stylesheets=[TROUBLE])
        self.file.on_change("value", lambda attr, old, new: self._soon(self.open_file))
        self.thorough.on_change("active", lambda attr, old, new: self.refresh())
        self.suggest.on_click(self.search)
        self.reset.on_click(lambda: self.move(Settings()))
        self.copy.js_on_click(CustomJS(args={"line": self.line, "button": self.copy}, code=COPY))
        self.root = self._lay_out()
        self._introduce()

    def attach(self, document: Document) -> None:
        """Put the page into a document, and the first picture onto it once somebody looks."""
        self._document = document
        document.title = f"rntk explore: {self.subject.name}"
        document.theme = Theme(json=THEME)
        document.add_root(self.root)
        document.js_on_event("connection_lost", CustomJS(args={"trouble": self.trouble}, code=GONE))
        self._soon(self.refresh)

    def _lay_out(self) -> Any:
        left = column(
            self.name,
            self.file,
            self.controls.root,
            self.thorough,
            row(self.suggest, self.reset),
            self.reason,
            self.line,
            self.copy,
            width=PANEL_WIDTH,
            sizing_mode="stretch_height",
            stylesheets=[PANEL],
        )
        right = column(
            row(self.score, self.status, sizing_mode="stretch_width"),
            self.trouble,
            self.curve.figure,
            row(self.gram.figure, self.score_by_ridge.figure, sizing_mode="stretch_both", styles={"flex": "6 1 0"}),
            sizing_mode="stretch_both",
            styles={"padding": f"{MARGIN}px"},
        )
        return row(left, right, sizing_mode="stretch_both")

    def _introduce(self) -> None:
        self.name.text = f"<b>{escape(self.subject.name)}</b><br><span>{escape(self.subject.describe())}</span>"

    def _soon(self, callback: Callable[[], None]) -> None:
        """Call when everything that came from the browser at the same moment has arrived."""
        if self._document is None:
            callback()
        else:
            self._document.add_next_tick_callback(callback)

    # -- what a person can ask for --------------------------------------------------------------------------------

    def move(self, settings: Settings) -> None:
        """Move all controls, and show the picture."""
        self.controls.show(settings)
        self.refresh()

    def refresh(self) -> None:
        """Compute and show the picture of the current settings, now or as soon as what is under way is done."""
        self.line.text = self.controls.settings.python()
        self._ask("look")

    def search(self) -> None:
        """Look for the flattest sensitivity, and move there."""
        self.suggest.update(label="Searching…", disabled=True)
        self._ask("suggest")

    def open_file(self) -> None:
        """Look at the file that was handed in."""
        self._ask("open")

    # -- one computation at a time --------------------------------------------------------------------------------

    def _ask(self, what: str) -> None:
        """Asked twice before it begins, it is done once, with the newest settings."""
        self._wanted.add(what)
        self._begin_next()

    def _begin_next(self) -> None:
        if self._busy or not self._wanted:
            return
        what = next(each for each in ("open", "suggest", "look") if each in self._wanted)
        self._wanted.remove(what)
        subject, settings = self.subject, self.controls.settings
        options: dict[str, Any] = {"quick": not self.thorough.active, "n_jobs": self._n_jobs}
        if what == "look":
            self._start(lambda: look(subject, settings, **options), self._show, "computing")
        elif what == "suggest":
            self._start(lambda: suggested(subject, settings, **options), self._move_there, "searching")
        else:
            name, content = str(self.file.filename), str(self.file.value)
            self._start(lambda: read_upload(name, content), self._look_at, "reading")

    def _start(self, job: Callable[[], Any], then: Callable[[Any], None], doing: str) -> None:
        self._busy = True
        self._begun += 1
        begun = self._begun

        def guarded() -> Any:
            try:
                return job()
            except Exception as error:  # a bug, but not the end of the session
                traceback.print_exc()
                return Trouble(f"this is a bug in rntk: {type(error).__name__}: {error}")

        def arrived(outcome: Any) -> None:
            self._busy = False
            then(outcome)
            self._begin_next()

        def announce() -> None:
            if self._busy and self._begun == begun:
                self.status.text = f"{doing}… (the first use of an activation compiles for some seconds)"

        if self._document is not None:
            self._document.add_timeout_callback(announce, PATIENCE)
        self._run(guarded, arrived)

    # -- what comes of it -----------------------------------------------------------------------------------------

    def _look_at(self, outcome: Subject | Trouble) -> None:
        if isinstance(outcome, Trouble):
            self._complain("This file can't be used", outcome)
            return
        self.subject = outcome
        self.reason.text = PROMISE
        self._introduce()
        self.refresh()

    def _move_there(self, outcome: tuple[Settings, str] | Trouble) -> None:
        self.suggest.update(label="Suggest", disabled=False)
        if isinstance(outcome, Trouble):
            self._complain("No suggestion", outcome)
            return
        settings, why = outcome
        self.reason.text = escape(why)
        self.move(settings)

    def _show(self, outcome: Picture | Trouble) -> None:
        if isinstance(outcome, Trouble):
            self._complain("No picture of these settings", outcome)
            return
        begin = time.perf_counter()
        self.curve.show(outcome.curve)
        self.gram.show(outcome)
        self.score_by_ridge.show(outcome.score)
        if self.trouble.visible:
            self._fade(False)
        self.trouble.visible = False
        self.score.text = describe_score(outcome.score, outcome.no_score)
        self.shown = outcome
        milliseconds = 1e3 * (outcome.seconds + time.perf_counter() - begin)
        lines = [f"shown: {outcome.choice}", *outcome.remarks, f"computed in {milliseconds:.0f} ms"]
        self.status.text = "<br>".join(map(escape, lines))

    def _complain(self, what: str, trouble: Trouble) -> None:
        kept = "" if self.shown is None else " The pictures are those from before."
        self.trouble.text = f"<b>{what}:</b> {escape(trouble.message.rstrip('.'))}.{kept}"
        self.trouble.visible = True
        self.status.text = ""
        self._fade(True)

    def _fade(self, faded: bool) -> None:
        for each in (self.curve.figure, self.gram.figure, self.score_by_ridge.figure, self.score):
            each.styles = {**each.styles, "opacity": "0.3" if faded else "1"}


def describe_score(score: Score | None, reason: str) -> str:
    """The score as HTML."""
    if score is None:
        return f"<span>No leave-one-out score: {escape(reason)}.</span>"
    if score.measure == "accuracy":
        return (
            f"leave-one-out accuracy <b>{score.value:.1%}</b><br>"
            f"<span>kernel ridge, best ridge; the largest class alone gives {score.baseline:.1%}</span>"
        )
    return f"leave-one-out R² <b>{score.value:.3f}</b><br><span>kernel ridge, best ridge; the mean label gives 0</span>"
