"""A newcomer's first hour in 25 steps: `python tools/newcomer.py dist/rntk-0.1.0-py3-none-any.whl`.

The wheel is installed into a fresh environment, in a folder of its own, and everything happens there: nothing of the
repository is in reach. First the wheel alone, then with extras. Each step prints one line; the first that fails stops
the script and says why. `make newcomer` builds the wheel before.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
import venv
import zipfile
from collections.abc import Callable
from email.parser import Parser
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

EXTRAS = "plot,disk,explore,aeon"
PYTHONS = ("3.11", "3.12", "3.13")
#: Who runs each step (this script, or Python in the new environment without and with extras), its title, what it does.
STEPS: list[tuple[str, str, Callable[[], None]]] = []


def step(stage: str, title: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Add a function to the steps, which run in the order they stand in here."""

    def add(function: Callable[[], None]) -> Callable[[], None]:
        STEPS.append((stage, title, function))
        return function

    return add


def run(numbers: list[int]) -> None:
    """Run steps; the first that fails ends the process."""
    for number in numbers:
        _, title, function = STEPS[number - 1]
        start = time.perf_counter()
        try:
            function()
        except Exception:
            print(f"{number:2}/{len(STEPS)} {title}: FAILED", flush=True)
            traceback.print_exc()
            sys.exit(f"newcomer: stopped at step {number} of {len(STEPS)}: {title}")
        print(f"{number:2}/{len(STEPS)} {title}: {time.perf_counter() - start:.1f} s", flush=True)


def command(*words: str | Path) -> str:
    """What a command of the new environment prints; an error with all it said if it fails."""
    program, *arguments = map(str, words)
    done = subprocess.run([HERE / "bin" / program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join([program, *arguments])} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def expect(true: Any, otherwise: Any) -> None:
    if not true:
        raise AssertionError(f"got {otherwise}")


def refusal(call: Callable[[], Any]) -> str:
    """The message of the error that a call ends with."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("was not refused")


def waves(n: int, seed: int = 0, channels: int = 1, ragged: bool = False) -> tuple[Any, Any]:
    """Noisy waves, slow and fast: an array (n, 30, channels), or a list of 20 to 40 steps, and labels."""
    import numpy as np

    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    lengths = rng.integers(20, 41, size=n) if ragged else np.full(n, 30)
    X = [
        np.sin((0.2 + 0.3 * label) * np.arange(T)[:, None] + rng.uniform(0, 6) + np.arange(channels))
        + 0.2 * rng.standard_normal((T, channels))
        for label, T in zip(y, lengths, strict=True)
    ]
    return (X if ragged else np.stack(X)), y


# ---- The wheel -------------------------------------------------------------------------------------------------------

HERE = Path(sys.prefix)  # the new environment; in this script as it starts, not yet
WHEEL = Path()


@step("wheel", "the wheel holds the package, its types and its licence, and says what it is")
def look_into_wheel() -> None:
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
        about = Parser().parsestr(wheel.read(next(n for n in names if n.endswith("/METADATA"))).decode())
    folders = {name.partition("/")[0] for name in names}
    expect(len(folders) == 2 and "rntk" in folders, folders)
    expect("rntk/py.typed" in names, "no py.typed")
    expect(any(name.endswith("licenses/LICENSE") for name in names), "no licence file")
    fields = ("Summary", "Author", "License-Expression", "Keywords", "Requires-Python", "Description-Content-Type")
    expect(all(about[field] for field in fields), {field: about[field] for field in fields})
    classifiers = about.get_all("Classifier", [])
    expect({f"Programming Language :: Python :: {each}" for each in PYTHONS} <= set(classifiers), classifiers)
    expect("Typing :: Typed" in classifiers, classifiers)


@step("wheel", "it installs into a fresh environment, alone")
def install() -> None:
    venv.create(HERE, with_pip=True)
    command("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", WHEEL)
    command("python", "-m", "pip", "check")


# ---- The wheel alone -------------------------------------------------------------------------------------------------


@step("alone", "Python and the command line start the same version, from this environment")
def start() -> None:
    import rntk

    expect(HERE in Path(rntk.__file__).parents, rntk.__file__)
    expect(rntk.__version__ == metadata.version("rntk"), rntk.__version__)
    expect(rntk.__version__ in command("rntk", "--version"), command("rntk", "--version"))


@step("alone", "a first Gram matrix")
def first_matrix() -> None:
    import numpy as np

    from rntk import RNTK

    K = RNTK()(waves(6)[0])
    expect(K.shape == (6, 6) and np.linalg.eigvalsh(K)[0] > 0, K)


@step("alone", "a first classifier, nothing chosen")
def first_fit() -> None:
    from rntk import RNTKClassifier

    score = RNTKClassifier().fit(*waves(24)).score(*waves(20, seed=1))
    expect(score >= 0.9, score)


@step("alone", "series of unequal lengths, cross-validated by scikit-learn")
def ragged() -> None:
    from sklearn.model_selection import cross_val_score

    from rntk import RNTK, RNTKSVC

    scores = cross_val_score(RNTKSVC(RNTK(readout="mean", normalize=True)), *waves(24, ragged=True), cv=3)
    expect(scores.mean() >= 0.8, scores)


@step("alone", "several channels, and arrays that have them first")
def channels() -> None:
    from rntk import RNTK, RNTKRidgeClassifier, SequenceBatch

    X, y = waves(24, channels=3)
    model = RNTKRidgeClassifier(RNTK(readout="mean", normalize=True)).fit(X, y)
    expect(model.score(SequenceBatch.from_aeon(X.transpose(0, 2, 1)), y) >= 0.9, "a bad score")
    expect("from_aeon" in refusal(lambda: model.predict(waves(24)[0].transpose(0, 2, 1))), "no word of from_aeon")


@step("alone", "missing values: refused with the name of what fills them, then filled in a pipeline")
def missing() -> None:
    import numpy as np
    from sklearn.pipeline import make_pipeline

    from rntk import RNTK, RNTKSVC
    from rntk.preprocessing import Interpolate

    X, y = waves(24)
    X[::3, 7:9] = np.nan
    model = RNTKSVC(RNTK(readout="mean", normalize=True))
    said = refusal(lambda: model.fit(X, y))
    expect("Interpolate" in said, said)
    score = make_pipeline(Interpolate(), model).fit(X, y).score(X, y)
    expect(score >= 0.8, score)


@step("alone", "probabilities and a ROC curve")
def roc() -> None:
    from sklearn.metrics import roc_auc_score, roc_curve

    from rntk import RNTKClassifier

    X, y = waves(20, seed=1)
    probabilities = RNTKClassifier().fit(*waves(24)).predict_proba(X)
    expect(abs(probabilities.sum(axis=1) - 1).max() < 1e-9, probabilities)
    false, true, _ = roc_curve(y, probabilities[:, 1])
    expect(true[-1] == false[-1] == 1 and roc_auc_score(y, probabilities[:, 1]) > 0.9, probabilities)


@step("alone", "a grid search over a kernel's settings")
def grid() -> None:
    from sklearn.model_selection import GridSearchCV

    from rntk import RNTK, RNTKSVC

    choices = {"kernel__sigma_w": [1.0, 1.4], "C": [1.0, 10.0]}
    search = GridSearchCV(RNTKSVC(RNTK(readout="mean", normalize=True)), choices, cv=2).fit(*waves(24, ragged=True))
    expect(set(search.best_params_) == set(choices), search.best_params_)


@step("alone", "nearest neighbours by the kernel's distance")
def neighbours() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    from rntk import RNTK

    X, y = waves(24)
    model = KNeighborsClassifier(3, metric=RNTK(readout="mean", normalize=True).distance).fit(X[..., 0], y)
    expect(model.score(X[..., 0], y) >= 0.8, "a bad score")


@step("alone", "a Gaussian process with error bars")
def gaussian_process() -> None:
    import numpy as np

    from rntk import RNTK, RNTKGaussianProcessRegressor

    X, labels = waves(60, ragged=True)
    y = labels + 0.1 * np.random.default_rng(1).standard_normal(60)
    model = RNTKGaussianProcessRegressor(RNTK(readout="mean", normalize=True)).fit(X[:40], y[:40])
    mean, deviation = model.predict(X[40:], return_std=True, include_noise=True)
    covered = np.mean(abs(mean - y[40:]) < 2 * deviation)
    expect(covered >= 0.8 and deviation.max() < 0.5, (covered, deviation))


@step("alone", "a learner and a pipeline, saved and loaded")
def save_and_load() -> None:
    from sklearn.pipeline import make_pipeline

    import rntk
    from rntk.preprocessing import ZNormalize

    X, y = waves(24, ragged=True)
    learner = rntk.RNTKSVC(rntk.RNTK(readout="mean", normalize=True))
    for name, model in (("learner.rntk", learner), ("pipeline.rntk", make_pipeline(ZNormalize(), learner))):
        rntk.save(model.fit(X, y), name)
        expect((rntk.load(name).predict(X) == model.predict(X)).all(), f"other predictions from {name}")


@step("alone", "sensitivity by step, and a kernel suggested without labels")
def suggestion() -> None:
    from rntk import RNTK, sensitivity, suggest

    X = waves(12)[0]
    expect("step" in str(sensitivity(RNTK(), X)), sensitivity(RNTK(), X))
    found = suggest(X)
    expect(found.kernel(X).shape == (12, 12) and found.explanation, found)


@step("alone", "labelled series from files: UCR's format and CSV")
def files() -> None:
    import numpy as np

    import rntk

    for name, seed in (("train", 0), ("test", 1)):
        X, y = waves(24, seed)
        rows = np.column_stack([y, X[..., 0]])
        np.savetxt(f"{name}.tsv", rows, "%.6g", "\t")
        names = ["label", *(f"t{t}" for t in range(30))]
        np.savetxt(f"{name}.csv", rows, "%.6g", ",", header=",".join(names), comments="")
    for name in ("train.tsv", "train.csv"):
        X, y = rntk.read(name)
        expect(len(X) == 24 and X.max_length == 30 and [str(each) for each in y[:2]] == ["0", "1"], (name, X, y))


@step("alone", "the command line fits, predicts and scores")
def command_line() -> None:
    said = command("rntk", "fit", "train.tsv", "--out", "model.rntk")
    expect(Path("model.rntk").stat().st_size and "model.rntk" in said, said)
    expect("accuracy" in command("rntk", "score", "model.rntk", "test.tsv").lower(), "no accuracy")
    command("rntk", "predict", "model.rntk", "test.tsv", "--out", "predictions.csv")
    expect(len(Path("predictions.csv").read_text().splitlines()) >= 24, "too few predictions")


@step("alone", "what needs an extra says which one")
def extra_by_name() -> None:
    from rntk import RNTK, sensitivity

    said = refusal(sensitivity(RNTK(), waves(6)[0]).plot)
    expect("rntk[plot]" in said, said)


# ---- With extras -----------------------------------------------------------------------------------------------------


@step("wheel", "extras install into the same environment")
def install_extras() -> None:
    wheel = f"{WHEEL}[{EXTRAS}]"
    command("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, "pandas")
    command("python", "-m", "pip", "check")


@step("extras", "a wide frame: a series in each row")
def wide_frame() -> None:
    import pandas

    from rntk import RNTK, RNTKSVC

    X, y = waves(24)
    frame = pandas.DataFrame(X[..., 0], columns=[f"t{t}" for t in range(30)])
    model = RNTKSVC(RNTK(readout="mean", normalize=True)).fit(frame, pandas.Series(y))
    expect(model.score(frame, y) >= 0.8, "a bad score")


@step("extras", "a long frame: a step in each row")
def long_frame() -> None:
    import pandas

    from rntk import RNTK, SequenceBatch

    X = waves(6, ragged=True)[0]
    rows = [(i, t, value) for i, x in enumerate(X) for t, value in enumerate(x[:, 0])]
    frame = pandas.DataFrame(rows, columns=["id", "t", "v"]).sample(frac=1, random_state=0)
    expect("from_long" in refusal(lambda: RNTK()(frame)), "no word of from_long")
    batch = SequenceBatch.from_long(frame, id="id", time="t", values="v")
    expect(all((a == b).all() for a, b in zip(batch, X, strict=True)), batch)


@step("extras", "a Gram matrix onto disk")
def onto_disk() -> None:
    import numpy as np

    from rntk import RNTK, gram

    X = waves(40)[0]
    K = gram.compute(RNTK(), X, out="K.zarr")
    expect(np.allclose(K @ np.ones(40), RNTK()(X).sum(1)), K)


@step("extras", "a picture of sensitivity")
def picture() -> None:
    from matplotlib import pyplot

    from rntk import RNTK, sensitivity

    sensitivity(RNTK(), waves(12)[0]).plot()
    pyplot.savefig("sensitivity.png")
    expect(Path("sensitivity.png").read_bytes().startswith(b"\x89PNG"), "no picture")


@step("extras", "the explorer starts on this machine, answers, and stops")
def explorer() -> None:
    words = [str(HERE / "bin" / "rntk"), "explore", "train.tsv", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        said = ""
        try:
            for line in server.stdout:
                said += line
                if address := re.search(r"http://127\.0\.0\.1:\d+/", line):
                    with urllib.request.urlopen(address[0], timeout=60) as page:
                        expect(page.status == 200 and b"rntk" in page.read(), address[0])
                    break
            else:
                raise AssertionError(f"got {said}")
        finally:
            server.send_signal(signal.SIGINT)
            said += server.stdout.read()
    expect(server.returncode == 0, f"exit code {server.returncode} after\n{said}")


@step("extras", "the classifier inside aeon")
def adapter() -> None:
    from rntk.adapters.aeon import RNTKAeonClassifier

    X, y = waves(24)
    score = RNTKAeonClassifier(progress=False).fit(X.transpose(0, 2, 1), y).score(X.transpose(0, 2, 1), y)
    expect(score >= 0.9, score)


@step("extras", "all of README's code runs, and its commands exist")
def readme() -> None:
    page = str(metadata.metadata("rntk").get_payload())
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.S | re.M)
    commands = sorted(set(re.findall(r"^    rntk ([a-z]+)", page, flags=re.M)))
    expect(blocks and commands, page)
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)
    for each in commands:
        command("rntk", each, "--help")


# ---- All of it -------------------------------------------------------------------------------------------------------


def main(folder: Path) -> None:
    """Run all steps in a folder: those of the wheel here, the others in the new environment, a process a stage."""
    global HERE
    HERE = folder / "environment"
    script = shutil.copy(__file__, folder)
    os.chdir(folder)
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
        os.environ.pop(name, None)
    os.environ |= {"MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
    for stage, group in groupby(range(1, len(STEPS) + 1), key=lambda number: STEPS[number - 1][0]):
        numbers = list(group)
        if stage == "wheel":
            run(numbers)
        elif code := subprocess.run([HERE / "bin" / "python", script, *map(str, numbers)], check=False).returncode:
            sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1].isdecimal():
        run([int(number) for number in sys.argv[1:]])
    else:
        WHEEL = Path(sys.argv[1]).resolve(strict=True)
        with tempfile.TemporaryDirectory(prefix="rntk-newcomer-") as new:
            main(Path(new))
