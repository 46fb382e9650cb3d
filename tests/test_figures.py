"""Every measured number on the pages is that of a committed record, and none stands there without one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def figures():
    """tools/figures.py, which also writes the numbers."""
    spec = importlib.util.spec_from_file_location("figures", ROOT / "tools" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["figures"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def known(figures):
    return figures.facts()


def test_pages_have_the_numbers_of_their_records(figures, known):
    for page in {*figures.SENTENCES, *figures.MEASURED}:
        text = (ROOT / page).read_text(encoding="utf-8")
        renewed, missing = figures.renew(text, page, known)
        assert missing == [], f"{page} does not say once what tools/figures.py names"
        assert renewed == text, f"{page} differs from its records; python tools/figures.py writes it anew"


def test_no_page_has_a_number_without_a_record(figures):
    for page in figures.MEASURED:
        assert figures.without_record((ROOT / page).read_text(encoding="utf-8"), page) == [], page


def test_every_table_stands_somewhere(figures):
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in figures.MEASURED]
    marked = {found[2] for text in pages for found in figures.TABLE.finditer(text)}
    assert marked == set(figures.TABLES)


def test_a_number_that_changed_or_has_no_record_is_found(figures, known):
    page = "docs/accuracy.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    sentence = figures.pattern_of(figures.SENTENCES[page][0]).search(text)
    wrong = text[: sentence.start(1)] + "12.34" + text[sentence.end(1) :]
    assert figures.renew(wrong, page, known) == (text, [])
    assert figures.renew(text.replace(sentence[0], ""), page, known)[1] == figures.SENTENCES[page][:1]
    cell = f"{known['unequal'].mean['svm']:.2f}"
    assert figures.renew(text.replace(cell, "99.99"), page, known)[0] == text
    assert figures.without_record(text + "\nIt is 3 times better.\n", page) == ["It is 3 times better."]


def test_classifiers_are_shown_by_halves_where_their_record_is_there(figures):
    rival = {"mean": 84.0, "mean_rank": 2.5, "wins_ties_losses": [3, 1, 2]}
    summary = {"sets": 6, "rntk": {"mean": 85.123, "mean_rank": 2.0}, "rntk seconds": 100.4, "minirocket seconds": 20.0}
    summary |= dict.fromkeys(("HC2", "MR-Hydra", "MiniROCKET"), rival)
    halves = {half: {"summary": summary} for half in ("development", "confirmation")}
    head, _, ours, *_ = shown = list(figures.table_by_halves(halves))
    assert head.index("confirmation half, 6 sets") < head.index("development half, 6 sets")
    assert ours == "| `RNTKClassifier()` | 85.12 (2.00) |  | 85.12 (2.00) |  |"
    assert "| MiniRocket | 84.00 (2.50) | 3 / 1 / 2 | 84.00 (2.50) | 3 / 1 / 2 |" in shown
    assert "201 core seconds of fitting and predicting, MiniRocket 40," in " ".join(shown)


def test_records_on_pages_are_of_full_runs(figures):
    for name in ("gram", "neural_tangents", "cold", "scaling", "nystrom", "steps"):
        assert not figures.read(name)["quick"], name
    rival = figures.read("neural_tangents")
    assert rival["machine"]["versions"]["neural-tangents"]["neural-tangents"] == "0.6.5"
    assert all(row["errors"]["rntk"] < 1e-14 for row in rival["results"])


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
