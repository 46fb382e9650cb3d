"""Errata of the RNTK paper's tables, which can be counted by hand."""

from __future__ import annotations

import numpy as np

from ...data import archive_facts
from ...printed import PAPER_METHODS, TWO_DIGITS, audit_table_2, rntk_table_1, rntk_table_2
from ...ranks import summary
from .erratum import DRAWS, STANDARD_ERRORS, Numbers, erratum

#: Table 2, (56, 7), and its column of RBF.
TABLE = np.array([[row[method] for method in PAPER_METHODS] for row in rntk_table_2().values()])
RBF = PAPER_METHODS.index("RBF")
MIDDLE = "MiddlePhalanxOutlineCorrect"


@erratum(
    where="[R] Table 1, P90 of RBF",
    printed="87.60 %",
    correct="87.50 %, 49 of 56 data sets",
    example="share of data sets with at least 90 % of the best accuracy",
    judge="counts in Table 2",
)
def p90_of_rbf(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """A share of 56 sets is a count over 56."""
    count = sum(row["RBF"] >= 0.9 * max(row.values()) for row in rntk_table_2().values())
    return rntk_table_1()["p90"]["RBF"], 100 * float(summary(TABLE).p90[RBF]), 100 * count / 56, TWO_DIGITS


@erratum(
    where="[R] Table 1, PMA of RBF",
    printed="94.86 %",
    correct="94.85 %",
    example="accuracy over the best accuracy, mean over 56 data sets",
    judge="tables that print as Table 2",
)
def pma_of_rbf(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """Tables that print like Table 2, digits filled in at random: rounded or cut off, any may be."""
    tables = TABLE + rng.uniform(-0.005, 0.01, (draws, *TABLE.shape))
    shares = 100 * (tables[:, :, RBF] / tables.max(axis=2)).mean(axis=1)
    # One table, not the mean of many; and two printed digits.
    allowed = STANDARD_ERRORS * float(shares.std(ddof=1)) + 0.0051
    return rntk_table_1()["pma"]["RBF"], 100 * float(summary(TABLE).pma[RBF]), float(shares.mean()), allowed


def _rank(name: str, method: str, printed: str, correct: str) -> None:
    """Mean rank, ties sharing the smallest.

    Two accuracies a hundredth of a percent apart are the same count, one rounded and one cut off: the largest of the
    56 test sets has 8236 sequences, which makes a step of 0.012 %.
    """

    @erratum(
        where=f"[R] Table 1, rank of {method}",
        printed=printed,
        correct=correct,
        example="mean rank over 56 data sets, 1 is best",
        judge="counts of better classifiers in Table 2",
        name=name,
    )
    def rank(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
        column = PAPER_METHODS.index(method)
        rows = TABLE.tolist()
        repaired = [[max(other for other in row if other - own <= TWO_DIGITS) for own in row] for row in rows]
        better = sum(other > row[column] + TWO_DIGITS for row in rows for other in row)
        return rntk_table_1()["rank"][method], float(summary(repaired).rank[column]), 1 + better / 56, TWO_DIGITS


# Table 2 taken at its digits gives 5.23. Two ties are hidden in them, one number rounded and one cut off: 97.67 and
# 97.66 % on SyntheticControl are 293 of 300, 59.38 and 59.37 % on Herring 38 of 64. With both it is 5.14, with the
# first alone the printed 5.21.
_rank(
    "rank_of_identity_rnn",
    "Identity RNN",
    "5.21",
    "5.14, or 5.23 if 97.66 and 97.67 %, 59.37 and 59.38 % were no ties",
)
# No dropped digit explains this one.
_rank("rank_of_gru", "GRU", "4.21", "4.16")


@erratum(
    where="[R] (23), ties",
    printed="no definition; tied classifiers usually share the mean of their ranks",
    correct="tied classifiers share the smallest rank",
    example="mean rank of RNTK over 56 data sets",
    judge="digits of Table 1",
)
def ties(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """The usual Friedman rank gives tied classifiers the mean of their ranks; Table 1 doesn't."""
    least = [[sum(other > own for other in row) for own in row] for row in TABLE]
    most = [[sum(other >= own for other in row) - 1 for own in row] for row in TABLE]
    usual = float(1 + (np.mean(least, axis=0) + np.mean(most, axis=0))[0] / 2)
    return usual, float(summary(TABLE).rank[0]), rntk_table_1()["rank"]["RNTK"], TWO_DIGITS


@erratum(
    where="[R] Table 1, ±",
    printed="no definition; read as √(Σ(y - ȳ)²/N)",
    correct="the sample deviation, N - 1 below the root",
    example="deviation of RNTK's accuracy over 56 data sets",
    judge="digits of Table 1",
)
def deviation(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """± could be the deviation over the 56 sets, or that of the population they are a sample of."""
    population, sample = float(TABLE[:, 0].std()), float(summary(TABLE).deviation[0])
    return population, sample, rntk_table_1()["deviation"]["RNTK"], TWO_DIGITS


def _accuracy(name: str, data_set: str, size: int) -> None:
    """An accuracy of Table 2 that is no count over the test sequences of its set."""
    (found,) = audit_table_2({data_set: size})

    @erratum(
        where=f"[R] Table 2, {data_set}",
        printed=f"{found.printed} %",
        correct=f"a count over {size}, such as {found.nearest} %",
        example=f"accuracy of {found.method}",
        judge=f"counts of {size} test sequences, the nearest,",
        name=name,
    )
    def accuracy(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
        possible = [100 * right / size for right in range(size + 1)]
        nearest = min(possible, key=lambda each: abs(each - found.printed))
        return found.printed, found.nearest, nearest, TWO_DIGITS


_accuracy("accuracy_on_adiac", "Adiac", 391)
_accuracy("accuracy_on_face_all", "FaceAll", 1690)
_accuracy("accuracy_on_ham", "Ham", 105)
_accuracy("accuracy_on_small_kitchen_appliances", "SmallKitchenAppliances", 375)


@erratum(
    where=f"[R] Table 2, kernels on {MIDDLE}",
    printed="accuracies on 291 test sequences",
    correct="on 154, the test size of MiddlePhalanxTW and MiddlePhalanxOutlineAgeGroup",
    example="number of test sequences",
    judge="the accuracies of all four kernels, counts of so many and no other number up to 291,",
)
def size_of_middle_phalanx(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """How many test sequences have the accuracies of all four kernels as counts? Only one size up to 291."""
    kernels = [rntk_table_2()[MIDDLE][method] for method in PAPER_METHODS[:4]]

    def possible(n: int) -> bool:
        return all(min(abs(100 * right / n - each) for right in range(n + 1)) <= TWO_DIGITS for each in kernels)

    sizes = [n for n in range(1, 292) if possible(n)]
    return 291.0, 154.0, float(np.mean(sizes)), float(np.ptp(sizes))


@erratum(
    where="[R] A.2, SemgHandSubjectCh2",
    printed="T = 1024",
    correct="T = 1500",
    example="steps of a sequence",
    judge="what the archive states",
)
def steps_of_semg_hand(rng: np.random.Generator, draws: int = DRAWS) -> Numbers:
    """Of the two sets with more than 1000 steps StarLightCurves has 1024, this one more."""
    facts = archive_facts()["SemgHandSubjectCh2"]
    return 1024.0, 1500.0, float(facts.longest), 0.0
