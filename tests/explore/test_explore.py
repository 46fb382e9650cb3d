"""`rntk explore` without a browser: what is computed, how the page answers, who may connect, what is refused."""

from __future__ import annotations

import base64
import dataclasses
import http.client
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

from helpers.refusals import assert_one_line_refusal
from rntk import RNTK, as_batch, input_gradient
from rntk.cli import app
from rntk.explore import Picture, Settings, Subject, Trouble, cylinder_bell_funnel, look, suggested
from rntk.explore.budget import COSTS, plan
from rntk.explore.settings import ACTIVATIONS, READOUTS, SCALES

needs_bokeh = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("bokeh") is None, reason="the page is made by Bokeh"
)


def study(n: int = 12, steps: int = 10, seed: int = 0, labels: str = "classes") -> Subject:
    rng = np.random.default_rng(seed)
    X = as_batch(rng.standard_normal((n, steps)) + np.arange(n)[:, None] % 2)
    y = {"classes": np.array(["odd", "even"])[np.arange(n) % 2], "numbers": X.values.reshape(n, steps).sum(1) + 0.5}
    return Subject.of("made up", X, y.get(labels))


def picture(of: Subject, settings: Settings | None = None, **options) -> Picture:
    found = look(of, settings or Settings(), **options)
    assert isinstance(found, Picture), found
    return found


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(),
        Settings("erf", 0.5, 0.01, 0.3, 2.0, depth=3, readout="mean", normalize=True),
        Settings().change(sigma_w=1 / 3, sigma_u=1e-7, sigma_b=123456789.0),
    ],
)
def test_the_line_makes_the_kernel_of_the_picture(chosen: Settings) -> None:
    made = eval(chosen.python(), {"RNTK": RNTK})
    wanted = chosen.kernel().get_params() | {"progress": None}
    assert made.get_params() == wanted
    assert Settings.of(made) == chosen


@pytest.mark.parametrize("name", SCALES)
def test_sliders_and_values_agree(name: str) -> None:
    scale = SCALES[name]
    for position in np.linspace(scale.low, scale.high, 41):
        value = scale.value(position)
        assert value >= 0
        assert scale.position(value) == pytest.approx(position, abs=1e-12)
    assert scale.position(0.0) == scale.low
    assert scale.position(1e300) == scale.high
    default = getattr(Settings(), name)
    assert scale.low <= scale.position(default) <= scale.high
    assert scale.value(scale.position(default)) == pytest.approx(default)


def test_zero_is_the_left_end_of_sigmas_that_may_vanish() -> None:
    assert SCALES["sigma_b"].value(SCALES["sigma_b"].low) == SCALES["sigma_h"].value(SCALES["sigma_h"].low) == 0
    assert SCALES["sigma_u"].value(SCALES["sigma_u"].low) > 0


# -- what is computed -------------------------------------------------------------------------------------------------


def test_accuracy_is_that_of_models_fitted_without_each_sequence() -> None:
    data = study(n=20)
    found = picture(data, Settings(sigma_w=1.0, sigma_b=0.2))
    part = data.part(20)
    K = Settings(sigma_w=1.0, sigma_b=0.2).kernel()(part.X)
    targets = np.where(part.codes == 0, 1.0, -1.0)
    for ridge, value in zip(found.score.ridges, found.score.values, strict=True):
        if ridge < 1e-6:
            continue  # there the rounding of a direct solution decides
        right = 0
        for i in range(20):
            rest = np.delete(np.arange(20), i)
            model = KernelRidge(alpha=ridge * np.trace(K) / 20, kernel="precomputed")
            guess = model.fit(K[np.ix_(rest, rest)], targets[rest]).predict(K[[i]][:, rest])[0]
            right += (guess > 0) == (targets[i] > 0)
        assert value == pytest.approx(right / 20)
    assert found.score.value == found.score.values.max()
    assert found.score.baseline == 0.5


def test_r2_of_numbers() -> None:
    found = picture(study(n=30, labels="numbers"), Settings("identity", sigma_w=1.0, sigma_b=1.0))
    assert found.score.measure == "R²"
    assert found.score.value > 0.99  # with biases the kernel has all affine functions, the sum of a sequence among them
    assert found.groups == ()


def test_without_labels_there_is_no_score_and_it_says_so() -> None:
    found = picture(study(labels="none"))
    assert found.score is None
    assert "no labels" in found.no_score
    one_class = Subject.of("one", study().X, np.ones(12, dtype=np.int64))
    assert "the same" in picture(one_class).no_score


def test_the_curve_is_the_mean_size_of_the_input_gradient() -> None:
    data, kernel = study(n=5, steps=7), Settings(sigma_b=0.1).kernel()
    X = list(data.part(5).X)
    shapes = []
    for i, j in itertools.permutations(range(5), 2):
        size = np.abs(input_gradient(kernel, X[i][:, 0], X[j][:, 0]))
        shapes.append(size / size.max())
    found = picture(data, Settings(sigma_b=0.1)).curve
    assert found.n_pairs == 20
    np.testing.assert_allclose(found.mean, np.mean(shapes, axis=0), rtol=1e-8)
    np.testing.assert_allclose(
        found.high - found.mean,
        np.minimum(2 * np.std(shapes, axis=0, ddof=1) / np.sqrt(20), 1 - found.mean),
        rtol=1e-6,
        atol=1e-12,
    )
    assert found.at.tolist() == list(range(1, 8))


def test_similarity_is_the_gram_matrix_by_class_with_a_diagonal_of_one() -> None:
    data = study()
    found = picture(data, Settings(sigma_h=0.5))
    assert [(group.label, group.start, group.stop) for group in found.groups] == [("even", 0, 6), ("odd", 6, 12)]
    order = np.argsort(data.y, kind="stable")
    wanted = RNTK(sigma_w=1.4142, sigma_h=0.5, normalize=True)(data.X.take(order))
    np.testing.assert_allclose(found.similarity, wanted, rtol=1e-10)
    assert np.abs(found.similarity).max() <= 1


def test_unequal_lengths_count_steps_from_the_last() -> None:
    rng = np.random.default_rng(0)
    data = Subject.of("ragged", as_batch([rng.standard_normal(length) for length in (4, 9, 6, 9)]), None)
    curve = picture(data).curve
    assert curve.from_end
    assert curve.at.tolist() == list(range(-8, 1))


def test_the_same_settings_give_the_same_picture() -> None:
    data = study(n=300, steps=30)
    first, second = (picture(data, Settings(readout="mean"), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(first.similarity, second.similarity)
    np.testing.assert_array_equal(first.curve.mean, second.curve.mean)


def test_the_suggestion_is_flatter_and_the_sliders_reach_it() -> None:
    data = cylinder_bell_funnel(30, 40)
    start = Settings("relu", sigma_w=1.0, sigma_b=0.5)
    found, why = suggested(data, start)
    assert picture(data, found).curve.flatness < picture(data, start).curve.flatness
    assert (found.activation, found.depth, found.readout) == ("relu", 1, "last")
    assert "flattest" in why
    for name, scale in SCALES.items():
        assert scale.value(scale.position(getattr(found, name))) == pytest.approx(getattr(found, name), rel=1e-9)


# -- which part of the data -------------------------------------------------------------------------------------------


def test_the_part_is_stratified_and_says_what_it_is() -> None:
    y = np.repeat(["a", "b", "c"], [400, 80, 20])
    data = Subject.of("uneven", as_batch(np.random.default_rng(0).standard_normal((500, 12))), y)
    part = data.part(100, block=5)
    assert {group.label: group.stop - group.start for group in part.groups} == {"a": 80, "b": 16, "c": 4}
    assert part.choice == "100 of 500 sequences, classes in proportion; every 5 steps averaged into one"
    assert part.X.max_length == 3
    np.testing.assert_array_equal(part.X.values, data.part(100, block=5).X.values)
    few = data.part(8)
    assert min(group.stop - group.start for group in few.groups) == 2  # leave-one-out needs two
    assert data.part(500).choice == "all 500 sequences"


def test_numbers_are_sampled_over_their_range_and_unlabelled_sequences_over_the_file() -> None:
    X = as_batch(np.arange(100.0)[:, None])
    numbers = Subject.of("numbers", X, np.random.default_rng(0).permutation(100) + 0.5)
    assert numbers.part(3).targets.tolist() == [0.5, 50.5, 99.5]
    assert Subject.of("plain", X, None).part(3).X.values.ravel().tolist() == [0, 50, 99]


def test_labels_are_understood_as_by_fit() -> None:
    X = as_batch(np.zeros((4, 3)))
    for y, task, wanted in (
        (np.array([1, 2, 1, 2]), "auto", "classify"),
        (np.array([0.5, 1.5, 0.5, 1.0]), "auto", "regress"),
        (np.array([1, 2, 1, 2]), "regress", "regress"),
        (np.array([1, 2, 3, 4]), "auto", "regress"),
        (np.array(["a", "b", "c", "d"]), "auto", "classify"),
        (None, "auto", "none"),
    ):
        assert Subject.of("x", X, y, task).task == wanted
    with pytest.raises(ValueError, match="words"):
        Subject.of("x", X, np.array(["a", "b", "a", "b"]), "regress")
    with pytest.raises(ValueError, match="single sequence"):
        Subject.of("x", X.take([0]), None)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("readout", READOUTS)
@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize(("n", "length"), [(2, 1), (100, 300), (5000, 300), (100, 20000), (100000, 3000)])
def test_plans_fit_the_budget(activation: str, readout: str, depth: int, n: int, length: int) -> None:
    chosen = plan(Settings(activation, depth=depth, readout=readout), n, length)
    assert 2 <= chosen.paired <= chosen.sequences <= n
    assert 1 <= chosen.block <= length
    if (readout, depth, n, length) == ("last", 1, 100, 300) and activation in COSTS:
        assert (chosen.sequences, chosen.block) == (100, 1)  # nothing is left out
    patient = plan(Settings(activation, depth=depth, readout=readout), n, length, quick=False)
    assert patient.sequences >= chosen.sequences
    assert patient.block <= chosen.block
    if activation == "relu" and depth == 1 and n * length <= 30_000:
        assert (patient.sequences, patient.block) == (n, 1)


@pytest.mark.parametrize(
    "chosen",
    [
        Settings(),
        Settings(depth=3),
        Settings(readout="mean"),
        Settings(readout="mean", depth=3),
        Settings("erf", readout="mean", depth=3),
        Settings("tanh"),
    ],
    ids=lambda chosen: f"{chosen.activation} {chosen.readout} {chosen.depth}",
)
def test_a_redraw_of_a_hundred_sequences_of_three_hundred_steps_is_live(chosen: Settings) -> None:
    """Seconds of one core, which a busy machine doesn't stretch: 0.2, and as much again for a slower one."""
    rng = np.random.default_rng(0)
    data = Subject.of("hundred", as_batch(rng.standard_normal((100, 300))), np.arange(100) % 2)
    picture(data, chosen, n_jobs=1)  # compiles
    taken = []
    with threadpool_limits(1):  # where cores are taken, a second thread of BLAS waits busily, and that counts too
        for _ in range(3):
            begin = time.process_time()
            picture(data, chosen, n_jobs=1)
            taken.append(time.process_time() - begin)
    assert min(taken) < (0.2 if chosen == Settings() else 0.4)


# -- absurd settings --------------------------------------------------------------------------------------------------


def assert_sane(found: Picture | Trouble) -> None:
    """A finite picture, or a reason."""
    if isinstance(found, Trouble):
        assert len(found.message) > 20
        return
    assert np.isfinite(found.similarity).all()
    for each in (found.curve.at, found.curve.mean, found.curve.low, found.curve.high):
        assert np.isfinite(each).all()
    assert (found.curve.low <= found.curve.mean).all() and (found.curve.mean <= found.curve.high).all()
    assert found.curve.mean.max() <= 1 + 1e-12
    assert found.score is None or np.isfinite(found.score.value)


ENDS = [sorted({scale.value(scale.low), scale.value(scale.high)}) for scale in SCALES.values()]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_end_of_every_slider(activation: str) -> None:
    # Expansions take their time at every step.
    data = study(n=6, steps=30) if activation in COSTS else study(n=4, steps=6)
    for sigmas in itertools.product(*ENDS):
        for readout, depth in (("last", 1), ("mean", 2)):
            assert_sane(look(data, Settings(activation, *sigmas, depth=depth, readout=readout)))


sigma = st.one_of(st.just(0.0), st.floats(0, 10), st.floats(0, allow_infinity=False, allow_nan=False))


@given(
    st.builds(
        Settings,
        st.sampled_from(sorted(COSTS)),
        *(sigma,) * 4,
        depth=st.integers(1, 5),
        readout=st.sampled_from(READOUTS),
        normalize=st.booleans(),
    ),
    st.floats(-1e150, 1e150),
)
@example(Settings(sigma_w=3.0), 1e150)
@example(Settings(sigma_u=0.0), 1.0)
@example(Settings("sin", sigma_w=1e160), 1.0)
@example(Settings(sigma_w=1e-200), 0.0)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_number_a_box_takes_ends_a_session(chosen: Settings, scale: float) -> None:
    values = scale * np.random.default_rng(0).standard_normal((5, 6))
    assert_sane(look(Subject.of("absurd", as_batch(values), np.array([0, 1, 0, 1, 0])), chosen.change()))


def test_overflow_and_silence_are_told() -> None:
    data = study(n=4, steps=3000)
    assert "overflows" in look(data, Settings(sigma_w=3.0)).message
    assert isinstance(look(data, Settings(sigma_w=3.0, normalize=True)), Picture)
    assert "sigma_u" in look(data, Settings(sigma_u=0.0)).message
    assert isinstance(look(Subject.of("zeros", as_batch(np.zeros((4, 5))), None), Settings()), Trouble)
    same = Subject.of("equal", as_batch(np.ones((6, 5))), np.arange(6) % 2)  # a singular Gram matrix
    assert_sane(look(same, Settings()))


# -- the page ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def page():
    """A page that computes at once, in a document nobody looks at."""
    pytest.importorskip("bokeh", reason="the page is made by Bokeh")
    from rntk.explore.page import Page

    made = Page(cylinder_bell_funnel(30, 40), lambda job, then: then(job()), n_jobs=1)
    made.refresh()
    return made


def test_the_page_shows_the_first_picture(page) -> None:
    assert page.line.text == Settings().python()
    assert "leave-one-out accuracy" in page.score.text
    assert re.search(r"computed in \d+ ms", page.status.text)
    assert "all 30 sequences" in page.status.text
    assert not page.trouble.visible
    assert len(page.curve.source.data["mean"]) == 40
    assert page.gram.source.data["image"][0].shape == (30, 30)


def test_every_control_changes_the_picture(page) -> None:
    def moved(change) -> None:
        before, line = page.shown, page.line.text
        change()
        assert page.shown is not before
        assert page.line.text != line
        assert page.shown.settings == page.controls.settings

    controls = page.controls
    for name in SCALES:
        moved(lambda name=name: controls.sliders[name].update(value=1.0))
        assert float(controls.boxes[name].value) == getattr(controls.settings, name) == SCALES[name].value(1.0)
        moved(lambda name=name: controls.boxes[name].update(value=" 0.25"))
        assert controls.boxes[name].value == "0.25"
        assert controls.sliders[name].value == pytest.approx(SCALES[name].position(0.25))
    moved(lambda: controls.activation.update(value="erf"))
    moved(lambda: controls.readout.update(value="mean"))
    moved(lambda: controls.depth.update(value="2"))
    moved(lambda: controls.normalize.update(active=[0]))
    assert 'activation="erf"' in page.line.text
    assert "depth=2" in page.line.text
    moved(lambda: page.move(Settings()))
    assert controls.activation.value == "relu"
    assert controls.depth.value == "1"
    assert controls.normalize.active == []


def test_what_is_no_deviation_is_taken_back(page) -> None:
    box = page.controls.boxes["sigma_w"]
    for wrong in ("", "-1", "inf", "1e999", "nan", "two", "1,5", "1.4142000000001"):
        box.value = wrong
        assert box.value == "1.4142"
        assert page.controls.settings == Settings()


def test_trouble_keeps_the_last_good_picture_faded(page) -> None:
    good, mean = page.shown, page.curve.source.data["mean"].copy()
    page.controls.boxes["sigma_w"].value = "1e40"
    assert page.trouble.visible
    assert "overflow" in page.trouble.text or "sigma_w" in page.trouble.text
    assert page.shown is good
    np.testing.assert_array_equal(page.curve.source.data["mean"], mean)
    faded = float(page.curve.figure.styles["opacity"])
    page.controls.sliders["sigma_w"].value = 1.2
    assert not page.trouble.visible
    assert page.shown is not good
    assert float(page.curve.figure.styles["opacity"]) > faded


def test_suggest_moves_the_sliders(page) -> None:
    page.controls.sliders["sigma_w"].value = 0.5
    page.search()
    assert abs(page.controls.sliders["sigma_w"].value - 1.4142) < 0.1
    assert "flattest" in page.reason.text
    assert not page.suggest.disabled
    assert page.shown.settings == page.controls.settings


def test_a_bug_is_shown_and_does_not_end_the_session(page, monkeypatch, capsys) -> None:
    def broken(*arguments, **options):
        raise RuntimeError("<b>oops</b>")

    with monkeypatch.context() as patch:
        patch.setattr("rntk.explore.page.look", broken)
        page.controls.sliders["sigma_w"].value = 1.0
        assert "this is a bug" in page.trouble.text
        assert "&lt;b&gt;oops" in page.trouble.text  # text, not HTML
        assert "RuntimeError" in capsys.readouterr().err
    page.controls.sliders["sigma_w"].value = 1.1
    assert not page.trouble.visible


def test_changes_during_a_computation_are_answered_by_one_more() -> None:
    pytest.importorskip("bokeh", reason="the page is made by Bokeh")
    from rntk.explore.page import Page

    waiting = []
    page = Page(cylinder_bell_funnel(12, 20), lambda job, then: waiting.append((job, then)))

    def finish() -> None:
        job, then = waiting.pop()
        then(job())

    page.refresh()
    page.search()
    for value in (0.5, 0.6, 0.7):
        page.controls.sliders["sigma_w"].value = value
    assert len(waiting) == 1
    finish()  # the first picture; then the search, before the picture of settings that it will replace
    assert page.shown.settings == Settings()
    assert page.suggest.disabled
    finish()
    assert len(waiting) == 1
    finish()
    assert not waiting
    assert page.shown.settings == page.controls.settings
    assert page.shown.settings.sigma_w > 1


def test_a_file_handed_in_on_the_page(page) -> None:
    def hand_in(name: str, text: str) -> None:
        # As the browser does it: Python code may not.
        page.file.set_from_json("filename", name)
        page.file.set_from_json("value", base64.b64encode(text.encode()).decode())

    hand_in("mine <1>.tsv", "a\t1\t2\t3\nb\t3\t2\t1\na\t1\t2\t2\n")
    assert "mine &lt;1&gt;.tsv" in page.name.text
    assert "all 3 sequences" in page.status.text
    hand_in("broken.tsv", "a\t1\tx\n")
    assert page.trouble.visible
    assert "broken.tsv" in page.trouble.text
    assert "line 1" in page.trouble.text
    assert "/tmp" not in page.trouble.text
    hand_in("what.pdf", "…")
    assert ".pdf" in page.trouble.text
    assert page.subject.name == "mine <1>.tsv"


def test_many_strange_classes_are_plain_text(page) -> None:
    data = study(n=6)
    names = np.array(["$$x^2$$", "<script>alert(1)</script>", "$$x^2$$", "ok", "ok", "<script>alert(1)</script>"])
    page.subject = dataclasses.replace(data, y=names, name="<img src=x onerror=alert(1)>")
    page._introduce()
    page.refresh()
    assert "<img" not in page.name.text
    labels = page.gram.figure.xaxis[0].major_label_overrides.values()
    assert {type(each).__name__ for each in labels} == {"PlainText"}


@needs_bokeh
def test_names_of_classes_fit() -> None:
    from rntk.explore.data import Group
    from rntk.explore.figures import LETTERS, label_groups

    def named(*names: str) -> list[str]:
        return label_groups(tuple(Group(name, 10 * k, 10 * k + 10) for k, name in enumerate(names)))

    assert named() == []
    assert named("only") == ["only"]
    assert named("up", "down") == ["up", "down"]
    assert named(*(f"class number {k}" for k in range(9))) == [f"…{k}" for k in range(9)]
    assert sum(map(len, named("a" * 90, "b" * 90))) <= LETTERS
    assert named(*map(str, range(100, 200))) == [""] * 100  # no room


def test_a_document_can_be_built_and_sent(page) -> None:
    from bokeh.document import Document

    document = Document()
    page.attach(document)
    document.validate()
    assert len(str(document.to_json())) > 10_000
    assert document.title == "rntk explore: cylinder-bell-funnel"


# -- who may connect --------------------------------------------------------------------------------------------------


@pytest.fixture
def server():
    pytest.importorskip("bokeh", reason="the page is made by Bokeh")
    from rntk.explore.server import PageServer

    made = PageServer(cylinder_bell_funnel(12, 20))
    ready = threading.Event()
    thread = threading.Thread(target=made.run, args=(ready.set,), daemon=True)
    thread.start()
    assert ready.wait(20)
    yield made
    made.stop()
    thread.join(20)
    assert not thread.is_alive()


def status(server, path: str = "/", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.putrequest("GET", path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def other_addresses() -> list[str]:
    """Addresses of this machine besides 127.0.0.1."""
    found = {"127.0.0.2"} if sys.platform == "linux" else set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the system says which address it would send from
            found.add(probe.getsockname()[0])
        except OSError:
            pass  # no network at all
    return sorted(found - {"127.0.0.1", "0.0.0.0"})


def test_the_socket_is_bound_to_the_loopback_address(server) -> None:
    assert server.socket.getsockname() == ("127.0.0.1", server.port)
    assert server.socket.family == socket.AF_INET
    assert server.port > 0
    assert server.address == f"http://127.0.0.1:{server.port}/"
    assert status(server) == 200


def test_other_addresses_of_the_machine_refuse_the_connection(server) -> None:
    addresses = other_addresses()
    if not addresses:
        pytest.skip("this machine has no address but 127.0.0.1")
    for address in addresses:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, server.port), timeout=10)
    with pytest.raises(OSError):
        socket.create_connection(("::1", server.port), timeout=10)


def test_foreign_hosts_and_origins_are_refused(server, monkeypatch) -> None:
    port = server.port
    assert status(server, Host=f"localhost:{port}") == 200
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}"):
        assert status(server, Host=host) == 403
        assert status(server, "/static/js/bokeh.min.js", Host=host) == 403
    socket_headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec_WebSocket_Protocol": "bokeh, token",
    }
    monkeypatch.setenv("BOKEH_ALLOW_WS_ORIGIN", "*")  # Bokeh would let everybody in
    for origin, code in ((f"http://127.0.0.1:{port}", 101), ("http://evil.example", 403), ("null", 403)):
        assert status(server, "/ws", Origin=origin, **socket_headers) == code


def test_http_s_own_port_goes_without_saying() -> None:
    pytest.importorskip("bokeh", reason="the page is made by Bokeh")
    from rntk.explore.server import names_of

    assert names_of(5006) == {"127.0.0.1:5006", "localhost:5006"}
    assert names_of(80) == {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}


def test_a_busy_port_and_the_next_free_one(server) -> None:
    from rntk.explore.server import PageServer

    with pytest.raises(OSError):
        PageServer(server.subject, server.port)
    other = PageServer(server.subject)
    assert other.port not in (0, server.port)
    other.socket.close()


# -- the command ------------------------------------------------------------------------------------------------------


def run(*arguments: object):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@needs_bokeh
def test_files_that_cannot_be_used_are_refused_before_a_server_starts(tmp_path, monkeypatch) -> None:
    def never(*arguments):
        raise AssertionError("a server was started")

    monkeypatch.setattr("rntk.explore.server.PageServer", never)
    assert_one_line_refusal(run("explore", tmp_path / "missing.tsv"), "missing.tsv")
    broken, single, words = tmp_path / "broken.tsv", tmp_path / "single.tsv", tmp_path / "words.tsv"
    broken.write_text("1\t2\tx\n")
    single.write_text("1\t2\t3\n")
    words.write_text("a\t2\t3\nb\t3\t4\n")
    assert_one_line_refusal(run("explore", broken), "broken.tsv", "line 1")
    assert_one_line_refusal(run("explore", single), "single.tsv", "two or more")
    assert_one_line_refusal(run("explore", words, "--task", "regress"), "words.tsv", "numbers")
    assert_one_line_refusal(run("explore", tmp_path), str(tmp_path))
    assert_one_line_refusal(run("explore", words, "--label", "nonsense"), "nonsense")
    assert_one_line_refusal(run("explore", "--port", "70000"), "--port")


def test_bundled_sets_by_name() -> None:
    pytest.importorskip("aeon", reason="GunPoint ships with aeon")
    from rntk.cli.explore import _subject

    found = _subject(Path("GunPoint"), "auto", "auto", None, "error")
    assert found.describe() == "50 sequences, 150 steps, 1 channel, 2 classes"


@needs_bokeh
def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert_one_line_refusal(run("explore", "--no-browser", "--port", port), str(port), "free one")


def test_without_bokeh_the_extra_is_named(monkeypatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "bokeh"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    assert_one_line_refusal(run("explore"), "bokeh", 'pip install "rntk[explore]"')


def test_help_is_short() -> None:
    result = run("explore", "--help")
    assert result.exit_code == 0
    assert "--no-browser" in result.stdout
    assert len(result.stdout.splitlines()) < 25


@needs_bokeh
def test_the_command_prints_its_address_and_ends_on_ctrl_c(tmp_path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("".join(f"{i % 2},{i},{i * i % 5},{i % 3}\n" for i in range(8)))
    # Tests that run in the background of a shell have Ctrl-C switched off; the command is to see it all the same.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rntk.cli import app; "
        f"app(['explore', {str(path)!r}, '--no-browser'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        assert "mine.csv: 8 sequences, 3 steps" in process.stdout.readline()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/")
        assert b"rntk explore: mine.csv" in connection.getresponse().read()
        connection.close()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert out == "ended\n"
    assert error == ""
