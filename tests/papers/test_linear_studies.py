"""Implicit Bias of Linear RNNs: its theorems, figures and table at small size."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

pytest.importorskip("jax", reason='training needs JAX: pip install "rntk[finite]"')

from helpers.records import check_pictures, verdicts
from rntk import papers
from rntk.finite.comparison import fit_slope
from rntk.papers.data.made import teacher_task
from rntk.papers.data.recording import load_recording


def test_theorem_3_3_small():
    run = papers.run("linear-theorem-3.3", widths=[20, 60, 180], seeds=25, networks=300, T=6)
    found = run.results["networks"]
    slope = fit_slope(found.widths, found.errors)
    assert slope.error < 0.08
    assert abs(slope.value + 0.5) < 4 * slope.error
    # Wide networks: the law of every tap passes, with room for six tests. Narrow ones have heavy tails.
    assert found.tap_p_values[-1].min() > 0.001
    np.testing.assert_allclose(found.tap_variances[-1], 1, atol=0.5)
    check_pictures(run)


def test_taps_of_tiny_networks_are_not_gaussian():
    """The test of the law can fail: a network of one unit multiplies Gaussian numbers."""
    run = papers.run("linear-theorem-3.3", widths=[1], seeds=2, networks=300, T=4)
    assert run.results["networks"].tap_p_values[0, 1:].max() < 1e-3
    assert run.results["networks"].tap_kurtosis[0].max() > 3
    assert run.results["networks"].square_correlations[0, 0, 1] > 0.2
    assert verdicts(run)["taps"] == verdicts(run)["independent"] == "differs"


@pytest.mark.slow
def test_theorem_3_3_full():
    assert set(verdicts(papers.run("linear-theorem-3.3", mode="full")).values()) == {"reproduced"}


def test_teacher_task():
    task = teacher_task(4, 400, 12, delay=3, snr_db=20, random_state=0)
    assert task.X.shape == (400, 12, 1) and task.y_test.shape == (400, 12, 1)
    silent, heard = np.mean(task.y[:, :3] ** 2), np.mean(task.y[:, 3:] ** 2)
    assert 0.005 < silent / heard < 0.02  # noise alone, 20 dB below the signal
    late = teacher_task(4, 3, 5, delay=9)
    assert late.y.std() > 0


def test_figures_1_and_2_small():
    run = papers.run("linear-figures-1-2", widths=[1000], steps=60, seeds=2)
    assert set(verdicts(run).values()) == {"too few seeds"}
    found = run.results["training"]
    assert (found.rnn[:, 0, -1] < 0.7 * found.rnn[:, 0, 0]).all()
    assert (np.abs(found.rnn - found.convolution).max() < 0.05 * found.convolution[:, :, 0].mean()).all()
    check_pictures(run, 2)
    narrow = papers.run("linear-figures-1-2", widths=[10], steps=20, seeds=10)
    assert verdicts(narrow)["figure 1"] == "differs"


def test_icml_figure_4_small():
    run = papers.run("linear-figure-4", steps=60)
    assert verdicts(run)["closer"] == "reproduced"
    found = run.results["training"]
    assert found.rnn.shape == (40, 3, len(found.steps)) and found.power > 0.1
    check_pictures(run)


def test_figure_3_small():
    run = papers.run("linear-figure-3", width=50, n_x=6)
    assert list(run.results) == ["delay-0", "delay-2", "delay-4", "delay-6"]
    assert verdicts(run)["rises"] in ("reproduced", "under conditions")
    check_pictures(run)


def test_theorem_4_1_small():
    run = papers.run("linear-theorem-4.1", sequences=10, T=10, steps=20)
    assert verdicts(run)["bound"] == "reproduced"
    narrow, wide = (
        papers.run("linear-theorem-4.1", only=["width-100"], width=width, seeds=6, sequences=10, T=12, steps=8)
        for width in (30, 1000)
    )
    assert verdicts(wide) == {"bound": "too few seeds", "rnn": "not run"}  # one width says nothing of the limit
    found = narrow.results["width-100"]
    assert found.rnn.shape == found.convolution.shape == (6, 12)
    # By hand: the paper's constants, of which none knows ν_W, for the first start.
    task = teacher_task(4, 10, 12, delay=5, nu_w=0.3, random_state=0)
    A = np.concatenate([[[x[t - j, 0] if t >= j else 0 for j in range(12)] for t in range(12)] for x in task.X])
    assert found.rate == pytest.approx(0.99 / (14 * np.linalg.norm(A, 2) ** 2))
    # Where the bound is tiny a finite network exceeds it, the less the wider it is.
    share = [np.log(each.results["width-100"].rnn[:, 6:]).mean() for each in (narrow, wide)]
    assert share[0] > share[1] + 0.7
    check_pictures(run)


# ---- The recording -----------------------------------------------------------------------------------------


def small_recording(folder: Path) -> Path:
    """A file of the same form: three segments, velocities that depend on spikes up to three bins ago."""
    rng = np.random.default_rng(0)
    spikes = rng.poisson(1.0, (1200, 6))
    taps = rng.standard_normal((3, 2, 6))
    velocity = sum(np.roll(spikes, j, axis=0) @ taps[j].T for j in range(3)) + rng.standard_normal((1200, 2))
    position = np.cumsum(np.vstack([[0, 0], 0.05 * velocity[:-1]]), axis=0)
    position[400:] += 50
    position[900:] -= 80
    path = folder / "s1_data.mat"
    savemat(path, {"spikes": spikes.astype(np.uint8), "vel": velocity, "pos": position})
    return path


def test_table_1_small(tmp_path):
    path = small_recording(tmp_path)
    assert load_recording(path).segments == ((0, 400), (400, 900), (900, 1200))
    settings = {"epochs": 20, "width": 60, "length": 6, "learning_rate": 1e-3, "batch_size": 16}
    run = papers.run("linear-table-1", data=tmp_path, **settings, limited_minutes=0.2)
    assert [found.minutes.tolist() for found in run.results.values()] == [[0.2], [0.8]]
    full = run.results["full"]
    assert (full.r2[0, :, -1] > 0.3).all()
    assert full.r2.shape == (1, 3, len(full.epochs), 2)
    assert verdicts(run)["full, values"] == "differs"  # other data
    check_pictures(run, 2)


def test_the_loader_says_how_to_get_the_data(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"github.com/KordingLab/spykesML"):
        load_recording(tmp_path / "nothing.mat")
    broken = tmp_path / "broken.mat"
    broken.write_bytes(b"not a matlab file at all" * 20)
    other = tmp_path / "other.mat"
    savemat(other, {"spikes": np.ones((5, 2))})
    short = tmp_path / "short.mat"
    savemat(short, {"spikes": np.ones((5, 2)), "vel": np.ones((4, 2)), "pos": np.ones((4, 2))})
    for path in (broken, other, short):
        with pytest.raises(ValueError, match=r"download it and pass its path"):
            load_recording(path)


@pytest.mark.slow
def test_table_1_on_the_recording():
    folder = os.environ.get("RNTK_DATA")
    if folder is None or not Path(folder, "s1_data.mat").exists():
        pytest.skip("set RNTK_DATA to a folder with s1_data.mat; rntk.papers.data.recording says where to get it")
    found = papers.run("linear-table-1", data=Path(folder), only=["limited"], epochs=100, width=200)
    rnn, scaled, _ = found.results["limited"].r2[0, :, -1]
    np.testing.assert_allclose(rnn, scaled, atol=0.05)
