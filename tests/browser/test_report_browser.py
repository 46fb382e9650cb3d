"""The report of `rntk reproduce` in a real browser: no error, nothing fetched, every picture there."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.toy_studies import Toy
from rntk.papers import Mode, reproduce, write_report

pytestmark = pytest.mark.browser

RESULTS = Path(__file__).resolve().parents[2] / "results"
#: Pictures that have no size, or that the browser could not draw.
BROKEN = """
return [...document.images].filter((each) => {
  const box = each.getBoundingClientRect();
  return !each.complete || each.naturalWidth === 0 || box.width < 50 || box.height < 50;
}).map((each) => each.alt);
"""
FETCHED = """
return performance.getEntriesByType("resource").map((each) => each.name).filter((name) => !name.startsWith("data:"));
"""


def check(driver, page: Path) -> int:
    """Open the page; returns how many pictures it shows."""
    driver.get(page.as_uri())
    assert driver.get_log("browser") == []
    assert driver.execute_script(BROKEN) == []
    assert driver.execute_script(FETCHED) == []
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    return int(driver.execute_script("return document.images.length"))


def test_report_opens_and_shows_every_picture(driver, tmp_path):
    toys = {name: Toy(name, units=3) for name in ("one", "two")}
    reproduce(toys.values(), Mode.QUICK, tmp_path, progress=False)
    assert check(driver, write_report(tmp_path, Mode.QUICK, toys)) == 2
    assert "it never was" in driver.find_element("tag name", "body").text


def test_the_report_in_the_repository_opens(driver):
    page = RESULTS / "full" / "report.html"
    if not page.exists():
        pytest.skip("results/full isn't there: it belongs to the repository, not to the package")
    records = list(page.parent.glob("*/record.json"))
    assert check(driver, page) >= 10
    assert len(driver.find_elements("css selector", "section[id]")) == len(records)
