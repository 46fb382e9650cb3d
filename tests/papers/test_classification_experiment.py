"""Tables 1 and 2 of the RNTK paper: cells on small data, and tables of cells whose answers are known."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from rntk.papers.experiments import classification
from rntk.papers.experiments.classification import EFFORTS, METHODS, ClassificationTable, NetworkSearch, classify
from rntk.papers.experiments.printed import (
    PAPER_METHODS,
    audit_table_2,
    rntk_table_1,
    rntk_table_2,
    table_1_from_table_2,
)
from sklearn.model_selection import GridSearchCV

from rntk import RNTKClassifierCV
from rntk.learners.search.folds import class_folds
from rntk.learners.search.grids import paper_grid
from rntk.papers.ranks import rank_test, summary
from rntk.sequences import as_batch


def waves(seed, n, T=16):
    rng = np.random.default_rng(seed)
    slow = np.arange(n) % 2
    X = np.sin(np.arange(T) * np.where(slow, 0.4, 0.8)[:, None] + rng.uniform(0, 6, (n, 1)))
    return as_batch(X + 0.6 * rng.standard_normal((n, T))), np.where(slow, "slow", "fast")


@pytest.fixture(scope="module")
def data():
    (train, train_labels), (test, test_labels) = waves(0, 24), waves(1, 30)
    return SimpleNamespace(name="waves", train=train, train_labels=train_labels, test=test, test_labels=test_labels)


def cells_of(rows):
    return {name: {method: {"accuracy": value} for method, value in row.items()} for name, row in rows.items()}


@pytest.fixture(scope="module")
def as_printed():
    """A table in which every cell is what the paper prints."""
    return ClassificationTable(cells_of(rntk_table_2()))


# -- cells -------------------------------------------------------------------------------------------------------------


def check_cell(cell):
    assert json.loads(json.dumps(cell)) == cell
    assert cell["accuracy"] == pytest.approx(100 * cell["right"] / cell["test"])
    assert (cell["train"], cell["test"], cell["length"], cell["classes"]) == (24, 30, 16, 2)
    assert min(cell["fit_seconds"], cell["predict_seconds"], cell["core_seconds"]) > 0


@pytest.fixture(scope="module")
def paper_s_search(data):
    return RNTKClassifierCV(search="paper", family="rbf", n_jobs=1).fit(data.train, data.train_labels)


def test_kernel_cells_follow_the_paper_s_protocol(data, paper_s_search):
    cell = classify("RBF", data, effort="quick")  # a small grid, which no effort cuts
    check_cell(cell)
    assert cell["right"] == np.sum(paper_s_search.predict(data.test) == data.test_labels)
    assert cell["best"] == paper_s_search.best_params_ and cell["reduced"] is None


def test_a_search_of_some_kernels_given_all_is_the_paper_s(data, paper_s_search):
    found = classification._fit_some_kernels(paper_grid("rbf"), {}, data.train, data.train_labels, 1, False)
    assert found.best == paper_s_search.best_params_ and found.reduced is None
    np.testing.assert_array_equal(found.predict(data.test), paper_s_search.predict(data.test))


def test_quick_kernels_are_a_part_of_the_paper_s_grid(data):
    cell = classify("RNTK", data, effort="quick")
    check_cell(cell)
    settings = {name: value for name, value in cell["best"].items() if name != "C"}
    assert settings in [each.settings for each in paper_grid("rntk")]
    assert cell["reduced"] == (
        "48 of the paper's 900 kernels (sigma_w 4 of 15, sigma_b 4 of 12, sigma_h 3 of 5), fewer by a factor of 18.8"
    )


def test_which_quick_kernels(data, monkeypatch):
    tried = []

    def scores(candidates, *arguments):
        tried.extend(each.settings for each in candidates)
        return np.zeros((len(candidates), 5))

    monkeypatch.setattr(classification, "svm_scores", scores)
    cell = classify("NTK", data, effort="quick")
    assert {each["depth"] for each in tried} == {1, 4, 7, 10}
    assert {each["sigma_w"] for each in tried} == {0.5, 2**0.5, 2.5}
    assert {each["sigma_b"] for each in tried} == {0, 0.5, 5}
    assert len(tried) == 36 and cell["reduced"].startswith("36 of the paper's 540 kernels (depth 4 of 10, ")
    assert cell["best"] == {"depth": 1, "sigma_w": 0.5, "sigma_b": 0, "C": 0.01}  # of equals the first
    tried.clear()
    classify("RNTK", data, effort="quick")
    assert {each["sigma_w"] for each in tried} == {1.34, 1.38, 2**0.5, 1.45}


def test_the_fast_search(data):
    cell = classify("RNTK fast", data)
    check_cell(cell)
    model = RNTKClassifierCV().fit(data.train, data.train_labels)
    assert cell["right"] == np.sum(model.predict(data.test) == data.test_labels)
    assert cell["best"] == model.best_params_ and cell["reduced"] is None


def test_minirocket(data):
    pytest.importorskip("aeon", reason='MiniRocket is aeon\'s: pip install "rntk[aeon]"')
    cell = classify("MiniRocket", data, n_jobs=1)
    check_cell(cell)
    assert cell["accuracy"] > 60 and cell["best"] == {}
    assert classify("MiniRocket", data, n_jobs=2)["right"] == cell["right"]


def test_networks_are_chosen_as_scikit_learn_would(data, monkeypatch):
    pytest.importorskip("optax", reason='needs JAX and optax: pip install "rntk[finite]"')
    from rntk.papers.networks import IdentityRNNClassifier

    grid = {"depth": [1], "width": [4], "learning_rate": [1e-3, 0.05]}
    monkeypatch.setitem(EFFORTS, "quick", NetworkSearch(grid, folds=2, epochs=6))
    cell = classify("Identity RNN", data, effort="quick")
    check_cell(cell)
    assert cell["reduced"] == (
        "2 of the paper's 32 settings (depth 1 of 2, width 1 of 4, learning_rate 2 of 4), fewer by a factor of 16; "
        "2 of 5 folds; 6 of 200 epochs; 5 trainings instead of 161"
    )
    folds = class_folds(data.train_labels, 2, np.random.RandomState(0))
    search = GridSearchCV(IdentityRNNClassifier(max_epochs=6, random_state=0), grid, cv=folds)
    search.fit(data.train, data.train_labels)
    assert cell["best"] == search.best_params_
    assert cell["right"] == np.sum(search.predict(data.test) == data.test_labels)


def test_networks_that_run_away_are_not_chosen(data, monkeypatch):
    pytest.importorskip("optax", reason='needs JAX and optax: pip install "rntk[finite]"')
    from rntk.finite import DivergenceError
    from rntk.papers import networks as baselines

    class Runaway(baselines.GRUClassifier):
        def fit(self, X, y):
            if self.learning_rate == 1e-2:
                raise DivergenceError("overflow")
            self.answer = y[0]
            return self

        def predict(self, X):
            return np.full(len(X), self.answer)

    monkeypatch.setattr(baselines, "GRUClassifier", Runaway)
    assert classify("GRU", data)["best"]["learning_rate"] == 1e-3
    assert classify("GRU", data)["reduced"] is None  # the paper's whole grid
    reduced = classify("GRU", data, effort="reduced")
    assert reduced["best"] == {"depth": 1, "width": 50, "learning_rate": 1e-3}
    assert reduced["reduced"].startswith("3 of the paper's 32") and "16 trainings instead of 161" in reduced["reduced"]
    assert "folds" not in reduced["reduced"]


def test_classify_refuses(data):
    with pytest.raises(ValueError, match=r"method must be one of RNTK, .*MiniRocket, not 'SVM'"):
        classify("SVM", data)
    with pytest.raises(ValueError, match="effort must be one of paper, reduced, quick"):
        classify("RBF", data, effort="much")


# -- tables ------------------------------------------------------------------------------------------------------------


def test_the_paper_s_own_table(as_printed):
    """Cells as printed give Table 1 as printed, no differences, and all the claims; and what was not asked."""
    assert as_printed.methods == PAPER_METHODS == METHODS[:7]
    assert list(as_printed.table()) == list(rntk_table_2())
    np.testing.assert_allclose(as_printed.metrics().mean, list(rntk_table_1()["mean"].values()), atol=0.0051)
    assert as_printed.ranks().critical_difference == pytest.approx(2.949 * (56 / (6 * 56)) ** 0.5, abs=1e-3)
    rows, metrics = as_printed.printed()
    assert rows == rntk_table_2()
    np.testing.assert_array_equal(metrics, as_printed.metrics())
    assert {by for row in as_printed.differences().values() for by in row.values()} == {0.0}
    checks = as_printed.checks
    assert len(checks) == 5 + 1 + 7
    assert [check.claim for check in checks if not check.holds] == [checks[5].claim]
    # By hand from its mean ranks, 2.52, 3.26, 3.09, 3.64 and 4.27, with a critical difference of 1.20:
    assert "told apart from Gaussian RNN, Identity RNN, GRU;" in checks[5].evidence
    assert checks[4].evidence.startswith("56 sets: RNTK 2.38, RBF 2.89")


def test_claims_fail_where_they_are_wrong():
    """With the columns of RNTK and Gaussian RNN exchanged the RNTK is the worst in everything."""
    rows = {
        name: {**row, "RNTK": row["Gaussian RNN"], "Gaussian RNN": row["RNTK"]} for name, row in rntk_table_2().items()
    }
    table = ClassificationTable(cells_of(rows))
    held = {check.claim: check.holds for check in table.checks}
    assert sum("the RNTK" in claim for claim in held) == 6
    assert not any(holds for claim, holds in held.items() if "the RNTK" in claim)
    wrong = {claim for claim, holds in held.items() if "within" in claim and not holds}
    assert wrong == {
        f"our mean accuracy of {method} is within 2 points of the printed one" for method in ("RNTK", "Gaussian RNN")
    }
    assert table.differences()["RNTK"]["GunPoint"] == pytest.approx(82.0 - 98.0)


def test_an_incomplete_table():
    cells = cells_of(
        {
            "GunPoint": {"RNTK": 96.0, "NTK": 94.0, "RBF": 90.0, "GRU": 97.0, "RNTK fast": 100.0, "MiniRocket": 99.0},
            "FaceAll": {"RNTK": 74.0, "NTK": 80.0, "RBF": 80.0, "RNTK fast": 80.0, "MiniRocket": 81.0},
            "Coffee": {"RNTK": 100.0, "NTK": 100.0, "RBF": 90.0, "mine": 50.0},
            "Elsewhere": {"RNTK": 10.0, "NTK": 90.0, "RBF": 90.0, "RNTK fast": 90.0},
        }
    )
    cells["Coffee"]["NTK"]["reduced"] = "much"
    table = ClassificationTable(cells)
    assert table.methods == ("RNTK", "NTK", "RBF", "GRU", "RNTK fast", "MiniRocket", "mine")
    kernels = ("RNTK", "NTK", "RBF")
    assert list(table.table(kernels)) == [
        "FaceAll",
        "GunPoint",
        "Coffee",
        "Elsewhere",
    ]  # the paper's order, then others
    assert table.table(("GRU",)) == {"GunPoint": {"GRU": 97.0}}
    y = [[74, 80, 80], [96, 94, 90], [100, 100, 90], [10, 90, 90]]
    np.testing.assert_array_equal(table.metrics(kernels), summary(y))
    assert table.ranks(kernels).p_value == rank_test(y).p_value
    rows, metrics = table.printed(kernels)
    assert rows["FaceAll"] == {"RNTK": 74.14, "NTK": 83.33, "RBF": 83.25} and "Elsewhere" not in rows
    np.testing.assert_array_equal(metrics, summary([[74.14, 83.33, 83.25], [98, 95.33, 95.33], [100, 100, 92.86]]))
    assert table.differences()["GRU"] == {"GunPoint": pytest.approx(97 - 80.66)}
    checks = {check.claim: check for check in table.checks}
    # One set for all four columns, three for the kernels; sets that the paper doesn't have are no part of its claims.
    assert checks["the RNTK has the best mean accuracy of RNTK, NTK, RBF, GRU"].evidence.startswith("1 set: RNTK 96.00")
    among = checks["the RNTK has the best mean accuracy of RNTK, NTK, RBF"]
    assert not among.holds and among.evidence.startswith("3 sets: RNTK 90.00, NTK 91.33; printed for these: RNTK 90.71")
    assert checks["the RNTK has the best Friedman rank of RNTK, NTK, RBF"].evidence.startswith(
        "3 sets: RNTK 1.67, NTK 1.33"
    )
    assert checks["our mean accuracy of NTK is within 2 points of the printed one"].evidence == (
        "3 sets: 91.33, printed 92.89, difference -1.55; furthest FaceAll -3.33; searched less than the paper on 1"
    )
    printed, rocket = (
        checks[f"the fast search is more accurate on average than {who}"] for who in ("the printed RNTK", "MiniRocket")
    )
    assert printed.holds and printed.evidence == "2 sets: 90.00 and 86.07; 2 wins, 0 ties, 0 losses"
    assert not rocket.holds and rocket.evidence == "2 sets: 90.00 and 90.00; 1 wins, 0 ties, 1 losses"
    with pytest.raises(ValueError, match="no data set has all of these methods; of 4 sets have GRU 1, mine 1"):
        table.metrics(("GRU", "mine"))
    with pytest.raises(ValueError, match="the paper has no MiniRocket"):
        table.printed(("RNTK", "MiniRocket"))
    again = ClassificationTable.from_dict(json.loads(json.dumps(table.to_dict(), allow_nan=False)))
    assert again == table and again.to_dict() == table.to_dict()
    assert table.to_dict()["metrics"] is None and table.to_dict()["ranks"] is None


def test_entries_of_another_set_are_no_witness():
    """The kernel columns that the paper prints for MiddlePhalanxOutlineCorrect count another set's answers."""
    table = ClassificationTable(
        cells_of({"MiddlePhalanxOutlineCorrect": {"RNTK": 82.0, "GRU": 74.0}, "GunPoint": {"RNTK": 97.0, "GRU": 80.0}})
    )
    checks = {check.claim: check for check in table.checks}
    rntk, gru = (
        checks[f"our mean accuracy of {each} is within 2 points of the printed one"] for each in ("RNTK", "GRU")
    )
    assert rntk.holds and rntk.evidence == (
        "1 set: 97.00, printed 98.00, difference -1.00; furthest GunPoint -1.00; without MiddlePhalanxOutlineCorrect "
        "+24.86, where what is printed belongs to another set"
    )
    assert gru.evidence.startswith("2 sets: 77.00")


def test_printed_digits_make_ties():
    """74 of 105 is 70.476 %, which the paper prints as 70.48 for the RNTK on Ham."""
    (check,) = ClassificationTable(cells_of({"Ham": {"RNTK fast": 100 * 74 / 105}})).checks
    assert check.evidence == "1 set: 70.48 and 70.48; 0 wins, 1 ties, 0 losses"


def test_tables_say_no():
    with pytest.raises(ValueError, match="without one: GunPoint, RNTK; GunPoint, GRU"):
        ClassificationTable({"GunPoint": {"RNTK": {"accuracy": 101.0}, "NTK": {"accuracy": 1.0}, "GRU": {}}})
    empty = ClassificationTable({})
    assert empty.checks == [] and empty.table() == {} and json.dumps(empty.to_dict())
    with pytest.raises(ValueError, match="no data set"):
        empty.metrics()


def test_record_of_one_set_has_no_deviation():
    record = ClassificationTable(cells_of({"GunPoint": {"RNTK": 96.0, "NTK": 94.0}})).to_dict()
    assert record["metrics"]["deviation"] == [None, None] and record["metrics"]["p90"] == [100.0, 100.0]
    assert json.dumps(record, allow_nan=False)


def test_picture(as_printed):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason='pictures need matplotlib: pip install "rntk[plot]"')
    figure, ax = pyplot.subplots()
    assert as_printed.plot(ax) is ax
    assert [text.get_text() for text in ax.texts[:2]] == ["RNTK  2.52", "RBF  3.09"]
    assert ax.get_title().startswith("56 data sets")
    pyplot.close(figure)


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_impossible_entries():
    """By hand: 75/105 is 71.43 % and 76/105 72.38 %, neither 71.63; 42/150 and 3/4 are what they are."""
    (only,) = audit_table_2({"Ham": 105, "GunPoint": 150, "Elsewhere": 7})
    assert only == ("Ham", "NTK", 71.63, 71.43, 105)
    middle = audit_table_2({"MiddlePhalanxOutlineCorrect": 291})
    assert [each.method for each in middle] == ["RNTK", "NTK", "RBF", "POLY"]
    assert audit_table_2({"MiddlePhalanxOutlineCorrect": 154})[0].method == "Gaussian RNN"


def test_table_1_from_table_2():
    found = table_1_from_table_2()
    assert [(metric, method) for metric, row in found.items() for method, each in row.items() if not each.follows] == [
        ("p90", "RBF"),
        ("pma", "RBF"),
        ("rank", "Identity RNN"),
        ("rank", "GRU"),
    ]
    entry = found["p90"]["RBF"]
    assert (entry.value, entry.printed) == (87.5, 87.6) and entry.difference == pytest.approx(-0.1)
