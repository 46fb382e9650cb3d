"""`rntk explore` as a person meets it: the real command, a real browser, a mouse and a keyboard.

Needs Debian's chromium and chromium-driver, and selenium; `make test-browser` installs what is missing and runs these
tests, and a browser that doesn't start is a failure then. Elsewhere they are skipped.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.browser

#: Bokeh's widgets live in shadow trees, which selectors don't enter.
FIND = """
const found = (root) => [
  ...root.querySelectorAll(arguments[0]),
  ...[...root.querySelectorAll("*")].filter((each) => each.shadowRoot).flatMap((each) => found(each.shadowRoot)),
];
return found(document).filter((each) => arguments[1] === null || each.innerText.trim() === arguments[1]);
"""
PATIENCE = 60.0


class Explorer:
    """The command and the browser that looks at its page."""

    def __init__(self, process: subprocess.Popen[str], address: str, driver) -> None:
        self.process, self.address, self.driver = process, address, driver

    def find(self, selector: str, text: str | None = None) -> list:
        """Elements anywhere on the page, in the order of the page.

        Texts are read in the page: Bokeh may draw a button anew at any moment, and then there is nothing left to ask.
        """
        return self.driver.execute_script(FIND, selector, text)

    def model(self, name: str, attribute: str = "text"):
        """What the page in the browser has, not what the server believes."""
        return self.driver.execute_script(
            "return Bokeh.documents[0].get_model_by_name(arguments[0])[arguments[1]]", name, attribute
        )

    def curve(self) -> np.ndarray:
        return np.array(
            self.driver.execute_script(
                "return Array.from(Bokeh.documents[0].get_model_by_name('curve').data.mean ?? [])"
            )
        )

    def drag(self, slider: int, pixels: int) -> None:
        from selenium.webdriver import ActionChains

        handle = self.find(".noUi-handle")[slider]
        ActionChains(self.driver).click_and_hold(handle).move_by_offset(pixels, 0).release().perform()

    def type_number(self, box: int, text: str) -> None:
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        # Keys to whatever has the focus: selenium can't see the focus in a shadow tree, and would set it anew.
        everything = ActionChains(self.driver).click(self.find("input[type=text]")[box])
        everything.key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
        ActionChains(self.driver).send_keys(text, Keys.ENTER).perform()

    def wait(self, until: Callable[[], object], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for {what}; status: {self.model('status')!r}"
            time.sleep(0.05)

    def settle(self) -> None:
        """Until the picture is that of the controls."""
        self.wait(lambda: "computed in" in self.model("status"), "a picture")

    def begin_anew(self) -> None:
        self.driver.get(self.address)
        self.wait(
            lambda: self.driver.execute_script("return window.Bokeh && Bokeh.documents.length == 1"), "the document"
        )
        self.settle()


def start(arguments: list[str]) -> tuple[subprocess.Popen[str], str]:
    """The command, and its address."""
    command = Path(sys.executable).with_name("rntk")
    assert command.exists(), "install rntk first: make test-browser does"
    process = subprocess.Popen(
        [str(command), "explore", *arguments, "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        # Tests in the background of a shell have Ctrl-C switched off; the command is to see it all the same.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
    assert found is not None
    return process, found[0]


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    try:
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out


@pytest.fixture(scope="module")
def command(driver):
    process, address = start([])
    yield process, address
    assert end(process) == (0, "ended\n")


@pytest.fixture
def explorer(command, driver):
    found = Explorer(*command, driver)
    found.begin_anew()
    yield found
    assert not [each for each in driver.get_log("browser") if each["level"] == "SEVERE"]


def test_moving_a_slider_changes_the_curve(explorer, tmp_path) -> None:
    before, line = explorer.curve(), explorer.model("line")
    assert len(before) == 128
    explorer.driver.save_screenshot(str(tmp_path / "before.png"))
    explorer.drag(0, -20)
    explorer.wait(lambda: not np.array_equal(explorer.curve(), before), "another curve")
    explorer.wait(lambda: explorer.model("line") != line, "another line")
    explorer.settle()
    sigma_w = float(re.search(r"sigma_w=([\d.]+)", explorer.model("line"))[1])
    assert sigma_w == pytest.approx(1.4142 - 20 / 200 * 3, abs=0.1)
    assert explorer.find("input[type=text]")[0].get_attribute("value") == str(sigma_w)
    # A network with σ_w < √2 forgets: the curve leans towards the end.
    assert explorer.curve()[:64].mean() < 0.5 * before[:64].mean()
    explorer.driver.save_screenshot(str(tmp_path / "after.png"))
    assert (tmp_path / "before.png").read_bytes() != (tmp_path / "after.png").read_bytes()


def test_a_redraw_is_quick_from_the_hand_to_the_eye(explorer) -> None:
    """From a key on a slider to the new data in the browser, by the browser's own clock; best of several."""
    from selenium.webdriver.common.keys import Keys

    explorer.driver.execute_script(
        """
        const document = Bokeh.documents[0], clock = (name) => () => { window[name] = performance.now() };
        document.get_model_by_name("sigma_w").properties.value.change.connect(clock("moved"));
        document.get_model_by_name("curve").properties.data.change.connect(clock("arrived"));
        """
    )
    handle = explorer.find(".noUi-handle")[0]
    taken = []
    for _ in range(8):
        before = explorer.curve()
        handle.send_keys(Keys.ARROW_RIGHT)
        explorer.wait(lambda before=before: not np.array_equal(explorer.curve(), before), "another curve")
        taken.append(explorer.driver.execute_script("return window.arrived - window.moved"))
    print(f"hand to eye: best {min(taken):.0f} ms, median {np.median(taken):.0f} ms; {explorer.model('status')}")
    assert min(taken) < 500  # on a machine that does other things as well


def test_lists_and_boxes_work(explorer) -> None:
    from selenium.webdriver.support.ui import Select

    line = explorer.model("line")
    readout = next(each for each in explorer.find("select") if "mean" in each.text)
    Select(readout).select_by_visible_text("mean")
    explorer.wait(lambda: 'readout="mean"' in explorer.model("line"), "the readout")
    explorer.type_number(2, "0.5")
    explorer.wait(lambda: "sigma_b=0.5" in explorer.model("line"), "the bias")
    explorer.wait(lambda: explorer.model("sigma_b", "value") == pytest.approx(np.log10(0.5)), "the slider")
    explorer.find("button", "Reset")[0].click()
    explorer.wait(lambda: explorer.model("line") == line, "the settings from before")


def test_copy_puts_the_line_on_the_clipboard(explorer) -> None:
    explorer.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": explorer.address.rstrip("/")},
    )
    explorer.drag(0, 10)
    explorer.settle()
    explorer.find("button", "Copy")[0].click()
    explorer.wait(lambda: explorer.find("button", "Copied"), "the word")
    copied = explorer.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == explorer.model("line")
    from rntk import RNTK

    assert isinstance(eval(copied, {"RNTK": RNTK}), RNTK)
    assert [each.text for each in explorer.find("pre")] == [copied]


def test_absurd_settings_are_told_and_survived(explorer, tmp_path) -> None:
    before = explorer.curve()
    explorer.type_number(0, "1e40")
    explorer.wait(lambda: explorer.model("trouble", "visible"), "the trouble")
    assert "sigma_w=1e+40" in explorer.model("line")
    explorer.driver.save_screenshot(str(tmp_path / "trouble.png"))
    assert any("No picture of these settings" in each.text for each in explorer.find("div"))
    np.testing.assert_array_equal(explorer.curve(), before)
    for slider in range(4):  # every slider to its right end, and beyond
        explorer.drag(slider, 100)
        explorer.drag(slider, 100)
    explorer.type_number(1, "-5")
    explorer.find("button", "Reset")[0].click()
    explorer.wait(lambda: not explorer.model("trouble", "visible"), "the end of the trouble")
    explorer.settle()
    np.testing.assert_array_equal(explorer.curve(), before)


def test_suggest_moves_the_sliders(explorer) -> None:
    explorer.drag(0, -40)
    explorer.settle()
    explorer.find("button", "Suggest")[0].click()
    explorer.wait(lambda: "flattest" in explorer.model("reason") and "pairs" in explorer.model("reason"), "the reason")
    explorer.wait(lambda: abs(explorer.model("sigma_w", "value") - 2**0.5) < 0.1, "the slider")
    explorer.settle()


def test_a_file_can_be_handed_in(explorer, tmp_path) -> None:
    good, bad = tmp_path / "mine.csv", tmp_path / "bad.csv"
    good.write_text("".join(f"{i % 2},{i},{i * i % 5},{i % 3}\n" for i in range(8)))
    bad.write_text("1,2,x\n")
    field = explorer.find("input[type=file]")[0]
    field.send_keys(str(bad))
    explorer.wait(lambda: "bad.csv" in explorer.model("trouble"), "the trouble")
    field.send_keys(str(good))
    explorer.wait(lambda: "mine.csv" in explorer.model("data"), "the name")
    explorer.wait(lambda: len(explorer.curve()) == 3, "the curve")
    assert not explorer.model("trouble", "visible")


def test_everything_fits_without_overlap(explorer, tmp_path) -> None:
    path = tmp_path / "page.png"
    explorer.driver.save_screenshot(str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    kinds = ("Figure", "Slider", "TextInput", "Select", "Button", "PreText", "Div")
    shown = explorer.find(", ".join(f".bk-{kind}" for kind in kinds))
    boxes = [explorer.driver.execute_script("return arguments[0].getBoundingClientRect()", each) for each in shown]
    boxes = [box for box in boxes if box["width"] > 0]
    assert len(boxes) > 15
    for box in boxes:
        assert box["left"] >= 0 and box["right"] <= 1280 and box["top"] >= 0 and box["bottom"] <= 800, box
    for k, a in enumerate(boxes):
        for b in boxes[k + 1 :]:
            apart = a["right"] <= b["left"] + 1 or b["right"] <= a["left"] + 1
            assert apart or a["bottom"] <= b["top"] + 1 or b["bottom"] <= a["top"] + 1, (a, b)
    size = explorer.driver.execute_script("return [document.body.scrollWidth, document.body.scrollHeight]")
    assert size[0] <= 1280 and size[1] <= 800


def test_two_tabs_don_t_disturb_each_other(explorer) -> None:
    first, line = explorer.driver.current_window_handle, explorer.model("line")
    explorer.driver.switch_to.new_window("tab")
    try:
        explorer.begin_anew()
        explorer.drag(0, 20)
        explorer.wait(lambda: explorer.model("line") != line, "another line")
        explorer.driver.switch_to.window(first)
        assert explorer.model("line") == line
    finally:
        for handle in explorer.driver.window_handles:
            if handle != first:
                explorer.driver.switch_to.window(handle)
                explorer.driver.close()
        explorer.driver.switch_to.window(first)


def test_the_page_says_when_the_command_has_ended(driver) -> None:
    process, address = start([])
    explorer = Explorer(process, address, driver)
    try:
        explorer.begin_anew()
    finally:
        code, out = end(process)
    assert (code, out) == (0, "ended\n")
    explorer.wait(lambda: "has ended" in explorer.model("trouble"), "the message")
