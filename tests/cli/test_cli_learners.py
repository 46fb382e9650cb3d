"""`rntk fit`, `predict` and `score` as a user meets them: files in, files and text out, mistakes in one line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rntk
from helpers.refusals import assert_one_line_refusal
from rntk import load, save
from rntk.cli import app


def run(*arguments: object):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def succeed(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def answer(*arguments: object) -> dict:
    """What --json prints, which is one object and nothing else."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    assert result.stderr == ""
    return json.loads(result.stdout)


def waves(seed: int, n: int = 24, steps: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 2
    phase = rng.uniform(0, 1, (n, 1))
    X = np.sin(np.arange(steps) * np.where(classes, 0.3, 0.7)[:, None] + phase) + 0.1 * rng.standard_normal((n, steps))
    return X, classes


def write_tsv(path: Path, X, labels) -> Path:
    rows = ["\t".join([str(label), *(f"{value:.6f}" for value in x)]) for x, label in zip(X, labels, strict=True)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def train(folder):
    X, y = waves(0)
    return write_tsv(folder / "train.tsv", X, np.array(["slow", "fast"])[1 - y])


@pytest.fixture(scope="module")
def held_out(folder):
    X, y = waves(1, n=50)
    return write_tsv(folder / "test.tsv", X, np.array(["slow", "fast"])[1 - y])


@pytest.fixture(scope="module")
def model(folder, train):
    path = folder / "model.rntk"
    succeed("fit", train, "--out", path)
    return path


@pytest.fixture(scope="module")
def targets(folder):
    X, _ = waves(2)
    return write_tsv(folder / "targets.tsv", X, X[:, -1].round(3))


@pytest.fixture(scope="module")
def regression(folder, targets):
    path = folder / "regression.rntk"
    succeed("fit", targets, "--out", path)
    return path


# The way from data to predictions ---------------------------------------------------------------------------


def test_fit_says_what_it_chose_and_where_it_put_it(train, tmp_path):
    path = tmp_path / "m.rntk"
    text = succeed("fit", train, "--out", path, "--jobs", 1)
    for word in (
        "24 sequences",
        "2 classes",
        "20 steps",
        "sigma_w",
        "ridge",
        "Leave-one-out accuracy",
        "Time",
        str(path),
    ):
        assert word in text
    assert load(path).classes_.tolist() == ["fast", "slow"]


def test_fit_prints_the_summary_of_the_model(train, tmp_path):
    printed = succeed("fit", train, "--out", tmp_path / "model.rntk")
    assert printed.startswith(load(tmp_path / "model.rntk").summary() + "\nTime: ")


def test_the_same_fit_gives_the_same_model(train, held_out, tmp_path):
    models = []
    for name in ("a.rntk", "b.rntk"):
        succeed("fit", train, "--out", tmp_path / name, "--seed", 3, "--cache", tmp_path / "grams")
        models.append(load(tmp_path / name))
    assert list((tmp_path / "grams").iterdir())
    assert models[0].random_state == 3
    X = waves(1)[0]
    np.testing.assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))


def test_fit_in_json(train, tmp_path):
    found = answer("fit", train, "--out", tmp_path / "m.rntk")
    assert found["task"] == "classify"
    assert (found["n_sequences"], found["n_channels"], found["max_length"]) == (24, 1, 20)
    assert found["classes"] == ["fast", "slow"]
    assert found["score"]["by"] == "leave-one-out"
    fitted = load(found["model"])
    assert found["score"]["value"] == fitted.loo_score_
    assert len(found["chosen"]) == len(fitted.members_)
    assert found["rntk_version"] == rntk.__version__
    for said, member in zip(found["chosen"], fitted.members_, strict=True):
        assert said["view"] == str(member.view)
        assert said["sigma_w"] == member.kernel.sigma_w


def test_predict_and_score_agree_with_the_library(model, held_out, tmp_path):
    X, _ = waves(1, n=50)
    learner = load(model)
    expected = learner.predict(X.round(6))
    found = answer("predict", model, held_out)
    assert found["predictions"] == expected.tolist()
    assert (found["task"], found["n_sequences"], found["out"]) == ("classify", 50, None)
    path = tmp_path / "p.csv"
    assert str(path) in succeed("predict", model, held_out, "--out", path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["prediction"] for row in rows] == expected.tolist()
    assert [row["label"] for row in rows] == found["labels"]
    assert [row["sequence"] for row in rows] == [str(i) for i in range(50)]
    scored = answer("score", model, held_out)
    assert scored["accuracy"] == np.mean(expected == np.array(found["labels"]))
    for row in scored["classes"]:
        inside = np.array(found["labels"]) == row["label"]
        claimed = expected == row["label"]
        assert row["n_sequences"] == inside.sum()
        assert row["recall"] == (inside & claimed).sum() / inside.sum()
        assert row["precision"] == (inside & claimed).sum() / claimed.sum()
    text = succeed("score", model, held_out)
    assert f"Accuracy: {scored['accuracy']:.1%}" in text
    assert "precision" in text


def test_predictions_on_the_screen(model, held_out, tmp_path):
    text = succeed("predict", model, held_out)
    assert "prediction" in text
    assert "10 more" in text
    X, _ = waves(1, n=3)
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(",".join(f"{value:.6f}" for value in x) for x in X) + "\n")
    text = succeed("predict", model, bare, "--label", "none")
    assert "label" not in text
    assert "more" not in text
    found = answer("predict", model, bare, "--label", "none")
    assert (found["n_sequences"], found["labels"]) == (3, None)


def test_values_are_not_taken_for_labels(model, regression, tmp_path):
    X, y = waves(3, n=5)
    path = tmp_path / "plain.csv"
    for learner, words in ((model, "none is a class of the model"), (regression, "one step shorter than the 20 steps")):
        np.savetxt(path, X, delimiter=",")
        assert_one_line_refusal(run("predict", learner, path), words, "--label none")
        found = answer("predict", learner, path, "--label", "none")
        assert found["labels"] is None
        np.savetxt(path, np.column_stack([y + 0.5, X]), delimiter=",")
        assert answer("predict", learner, path, "--label", "first")["predictions"] == found["predictions"]


def test_regression(regression, targets):
    assert type(load(regression)).__name__ == "RNTKRegressor"  # labels with fractions are targets
    scored = answer("score", regression, targets)
    learner = load(regression)
    X, _ = waves(2)
    assert scored["r2"] == pytest.approx(learner.score(X.round(6), X[:, -1].round(3)))
    assert scored["rmse"] > 0
    text = succeed("score", regression, targets)
    assert "R²" in text
    assert "RMSE" in text
    assert answer("predict", regression, targets)["task"] == "regress"


def test_the_score_of_a_regression(targets, tmp_path):
    found = answer("fit", targets, "--out", tmp_path / "m.rntk")
    assert (found["task"], found["classes"], found["score"]["measure"]) == ("regress", None, "r2")
    assert 0.5 < found["score"]["value"] <= 1
    assert "R²" in succeed("fit", targets, "--out", tmp_path / "m.rntk", "--force")


def test_tasks(folder, tmp_path):
    X, y = waves(3)
    whole = write_tsv(tmp_path / "whole.tsv", X, y + 1)
    assert answer("fit", whole, "--out", tmp_path / "a")["classes"] == [1, 2]
    assert answer("fit", whole, "--out", tmp_path / "b", "--task", "regress")["task"] == "regress"
    constant = write_tsv(tmp_path / "constant.tsv", X, np.full(len(X), 0.5))
    found = answer("fit", constant, "--out", tmp_path / "c")
    assert found["score"]["value"] is None
    assert answer("score", tmp_path / "c", constant)["r2"] is None
    for task in ("fit", "score"):
        arguments = (constant, "--out", tmp_path / "c", "--force") if task == "fit" else (tmp_path / "c", constant)
        assert "equal" in succeed(task, *arguments)


def test_other_learners_predict_too(tmp_path, held_out):
    """Whatever `save` takes: here a Gaussian process and a regression of two targets."""
    X, _ = waves(2)
    save(rntk.RNTKGaussianProcessRegressor(optimizer=None).fit(X, X[:, 0]), tmp_path / "gp.rntk")
    save(rntk.RNTKRidge().fit(X, X[:, :2]), tmp_path / "two.rntk")
    assert len(answer("predict", tmp_path / "gp.rntk", held_out)["predictions"]) == 50
    assert np.shape(answer("predict", tmp_path / "two.rntk", held_out)["predictions"]) == (50, 2)
    succeed("predict", tmp_path / "two.rntk", held_out, "--out", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[0] == "sequence,prediction_0,prediction_1,label"
    labelled = write_tsv(tmp_path / "t.tsv", X, X[:, 0])
    assert_one_line_refusal(run("score", tmp_path / "two.rntk", labelled), "2 numbers per sequence")


def test_missing_values_and_formats(model, tmp_path):
    path = tmp_path / "holes"
    path.write_text("\n".join("slow,1.0,NaN,2.0," + ",".join(["0.5"] * 17) for _ in range(2)) + "\n")
    assert_one_line_refusal(run("predict", model, path), "suffix")
    assert_one_line_refusal(run("predict", model, path, "--format", "csv"), "holes")
    assert answer("predict", model, path, "--format", "csv", "--missing", "interpolate")["n_sequences"] == 2


def test_labels_of_another_type_are_compared_as_written(tmp_path):
    """A class 1 learned as a number is the label "1" of a file that has words too."""
    X, y = waves(3)
    train = write_tsv(tmp_path / "train.tsv", X, y + 1)
    succeed("fit", train, "--out", tmp_path / "m.rntk")
    mixed = write_tsv(tmp_path / "mixed.tsv", X, ["other", *(y[1:] + 1)])
    found = answer("score", tmp_path / "m.rntk", mixed)
    assert found["accuracy"] > 0.8
    assert [(row["label"], row["known"]) for row in found["classes"]] == [("1", True), ("2", True), ("other", False)]
    assert "not a class of the model" in succeed("score", tmp_path / "m.rntk", mixed)
    foreign = write_tsv(tmp_path / "foreign.tsv", X, y + 7)
    assert_one_line_refusal(run("score", tmp_path / "m.rntk", foreign), "no label", "7, 8", "1, 2")


# Mistakes ---------------------------------------------------------------------------------------------------


def test_missing_files(model, tmp_path):
    nowhere = tmp_path / "nowhere.tsv"
    assert_one_line_refusal(run("fit", nowhere, "--out", tmp_path / "m.rntk"), "nowhere.tsv", "no such file")
    for command in ("predict", "score"):
        assert_one_line_refusal(run(command, model, nowhere), "nowhere.tsv", "no such file")
        assert_one_line_refusal(run(command, tmp_path / "no.rntk", nowhere), "no.rntk", "no such file")
    assert not list(tmp_path.iterdir())


def test_wrong_usage(train, model, tmp_path):
    out = tmp_path / "m.rntk"
    assert_one_line_refusal(run("fit", train), "--out")
    assert_one_line_refusal(run("fit"), "DATA")
    assert_one_line_refusal(run("fit", train, "--out", out, "--task", "guess"), "guess")
    assert_one_line_refusal(run("fit", train, "--out", out, "--seed", "-1"), "seed")
    assert_one_line_refusal(run("fit", train, "--out", out, "--jobs", "0"), "n_jobs")
    assert_one_line_refusal(run("fit", train, "--out", out, "--cache", train), "cache")
    assert_one_line_refusal(run("predict", model), "DATA")
    assert_one_line_refusal(run("predict", model, train, "--label", ""), "label")
    assert not out.exists()


def test_a_model_is_not_overwritten_unless_asked(train, tmp_path):
    path = tmp_path / "m.rntk"
    path.write_text("precious")
    assert_one_line_refusal(run("fit", train, "--out", path), "m.rntk", "--force")
    assert path.read_text() == "precious"
    succeed("fit", train, "--out", path, "--force")
    assert_one_line_refusal(run("predict", path, train, "--out", path, "--force"), "files to read")
    (tmp_path / "p.csv").write_text("precious")
    assert_one_line_refusal(run("predict", path, train, "--out", tmp_path / "p.csv"), "--force")
    assert (tmp_path / "p.csv").read_text() == "precious"
    succeed("predict", path, train, "--out", tmp_path / "p.csv", "--force")


def test_a_place_that_cannot_be_written_is_refused_before_the_work(train, tmp_path):
    for out, word in (
        (tmp_path, "folder"),
        (tmp_path / "no" / "m.rntk", "no folder"),
        (tmp_path / ("x" * 300), "long"),
    ):
        assert_one_line_refusal(run("fit", train, "--out", out), word)
    assert_one_line_refusal(run("fit", train, "--out", train, "--force"), "files to read")


def test_corrupt_models(model, held_out, tmp_path):
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 1
    path = tmp_path / "m.rntk"
    for wrong, word in ((content, "changed"), (content[:1000], "cut short"), (b"text", "not a model file")):
        path.write_bytes(wrong)
        for command in ("predict", "score"):
            assert_one_line_refusal(run(command, path, held_out), "m.rntk", word)
    assert_one_line_refusal(run("predict", held_out, model), "test.tsv", "not a model file")  # the wrong way round


def test_another_number_of_channels(model, tmp_path):
    path = tmp_path / "two.ts"
    path.write_text(
        "@problemName two\n@timeStamps false\n@missing false\n@univariate false\n@dimensions 2\n@equalLength true\n"
        "@seriesLength 3\n@classLabel true slow fast\n@data\n1,2,3:4,5,6:slow\n3,2,1:6,5,4:fast\n"
    )
    for command in ("predict", "score"):
        assert_one_line_refusal(run(command, model, path), "1 channel,", "2 channels")


def test_another_length_where_it_matters(tmp_path):
    model = tmp_path / "vectors.rntk"
    X, y = waves(0)
    save(rntk.RNTKRidgeClassifier(rntk.NTK()).fit(X, y), model)
    X, y = waves(1, steps=15)
    path = write_tsv(tmp_path / "short.tsv", X, np.array(["fast", "slow"])[y])
    assert_one_line_refusal(run("predict", model, path), "15", "20")
    ragged = tmp_path / "ragged.tsv"
    ragged.write_text("slow\t1\t2\t3\nfast\t1\t2\n")
    assert_one_line_refusal(run("predict", model, ragged), "one length")


def test_labels_that_cannot_be_learned(train, model, regression, targets, tmp_path):
    X, _ = waves(0, n=6)
    out = tmp_path / "m.rntk"
    single = write_tsv(tmp_path / "single.tsv", X, ["only"] * 6)
    assert_one_line_refusal(run("fit", single, "--out", out), "single class", "only")
    different = write_tsv(tmp_path / "different.tsv", X, range(6))
    assert answer("fit", different, "--out", out)["task"] == "regress"  # no class could be learned from them
    out.unlink()
    assert_one_line_refusal(run("fit", train, "--out", out, "--task", "regress"), "words", "fast")
    assert_one_line_refusal(run("fit", targets, "--out", out, "--task", "classify"), "fractions", "--task regress")
    bare = tmp_path / "bare.csv"
    bare.write_text("1,2,3\n4,5,6\n")
    assert_one_line_refusal(run("fit", bare, "--out", out, "--label", "none"), "no labels")
    assert_one_line_refusal(run("score", model, bare, "--label", "none"), "no labels")
    assert_one_line_refusal(run("score", regression, train), "words")
    broken = tmp_path / "broken.tsv"
    broken.write_text("a\t1\tx\t2\nb\t1\t2\ty\n")
    assert_one_line_refusal(run("fit", broken, "--out", out), "line 1", "line 2", "What to try")
    assert not out.exists()


def test_a_bug_is_not_taken_for_a_mistake(model, held_out, monkeypatch):
    """What nobody expects keeps its traceback, and the exit code says so."""

    def fail(*arguments, **options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(rntk.RNTKClassifier, "predict", fail)
    result = run("predict", model, held_out)
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)


# As a process -----------------------------------------------------------------------------------------------


def test_the_program(model, held_out, tmp_path):
    """Standard output holds the object alone, and a refusal holds one line on standard error."""
    ours = "import warnings; warnings.filterwarnings('error', module='rntk')"
    code = f"{ours}; from rntk.cli import app; app(prog_name='rntk')"
    rntk_program = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run([*rntk_program, "score", str(model), str(held_out), "--json"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["n_sequences"] == 50
    done = subprocess.run([*rntk_program, "score", str(held_out), str(held_out)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_help_names_the_commands():
    text = succeed("--help")
    for command in ("fit", "predict", "score", "demo", "info"):
        assert command in text
    assert "--force" in succeed("fit", "--help")


def test_messages_name_options_of_the_command_line(tmp_path):
    out = tmp_path / "m.rntk"
    for name, text, words in (
        ("a.csv", "f0,f1,f2\n0.5,0.2,0.1\n", "pass --label first, last, none or the name of a column"),
        ("b.csv", "1;2,5\n2;3,5\n", "pass --decimal , if semicolons separate numbers with decimal commas, --decimal ."),
        ("c.csv", "1,2,3,4\n1,0.5,0.2,0.1\n", "pass --header if it is a header, --no-header if it is a sequence"),
        ("d.tsv", "1\t2\t\t3\n2\t1\t2\t3\n", "pass --missing interpolate to fill gaps linearly"),
        ("e.dat", "1,2\n", "pass --format tsv, ts, arff or csv"),
    ):
        (tmp_path / name).write_text(text)
        assert_one_line_refusal(run("fit", tmp_path / name, "--out", out), words)
    assert_one_line_refusal(run("fit", tmp_path / "b.csv", "--out", out, "--decimal", ";"), "--decimal ; is not known")
