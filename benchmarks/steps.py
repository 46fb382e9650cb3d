"""Learning from 10 000 and 100 000 sequences of 100 steps by landmarks among steps: how long, how much memory.

    python benchmarks/steps.py [--quick] [--out benchmarks/records/steps.json]

Sequences are cylinders, bells and funnels in noise (Saito, 1994). The model is `StepFeatures` in single precision and
scikit-learn's `RidgeClassifierCV`, which chooses its ridge by leave-one-out in closed form, in one pipeline. Seconds
are those of fit; the processor's count all cores and say more than the clock's where other work runs beside, so the
load is in the record. Memory is the peak resident set of a process that does nothing else. One sequence at a time is
what a server predicts. The error is that of the kernel, `StepFeatures.kernel_error`. The exact classifier,
`RNTKRidgeClassifier`, is compared on a few of the sequences, where both can run. Aims are those the project set itself;
a missed one is printed as missed.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import Pipeline, make_pipeline

from nystrom import LONGEST, sequences
from parts import run_parts
from rntk import RNTK, RNTKRidgeClassifier, StepFeatures

#: Steps of a landmark's history.
HISTORY = 16
RIDGES = np.logspace(-4, 2, 7)
#: Seconds of fit for 10 000 and for 100 000 sequences on two cores; milliseconds of the processor for one prediction.
AIMS = {"ten_thousand": 120.0, "hundred_thousand": 1200.0, "milliseconds": 10.0}
FULL = {
    "ten_thousand": 10_000,
    "hundred_thousand": 100_000,
    "new": 5_000,
    "exact": 1_000,
    "landmarks": 512,
    "history": HISTORY,
}
QUICK = {"ten_thousand": 500, "hundred_thousand": 2_000, "new": 200, "exact": 100, "landmarks": 64, "history": HISTORY}
#: Predictions of one sequence that are averaged.
REPEATS = 50


def kernel() -> RNTK:
    return RNTK(sigma_w=1.0, sigma_b=0.3, readout="mean", normalize=True, dtype="float32", progress=False)


def model(landmarks: int) -> Pipeline:
    return make_pipeline(StepFeatures(kernel(), landmarks, HISTORY, random_state=0), RidgeClassifierCV(RIDGES))


def learn(training: int, new: int, landmarks: int) -> dict[str, Any]:
    """Fit and predict, with seconds and the peak memory of this process."""
    X, y = sequences(training, 0, LONGEST)
    Z, labels = sequences(new, 1, LONGEST)
    model(4).fit(X.take(np.arange(20)), y[:20])  # compiled code is loaded once per process, not per fit
    begin, processor = time.perf_counter(), time.process_time()
    fitted = model(landmarks).fit(X, y)
    seconds, processor_seconds = time.perf_counter() - begin, time.process_time() - processor
    score, one = float((fitted.predict(Z) == labels).mean()), Z.take([0])
    processor = time.process_time()
    for _ in range(REPEATS):
        fitted.predict(one)
    return {
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "milliseconds": 1000 * (time.process_time() - processor) / REPEATS,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "rank": int(fitted[0].rank_),
        "ridge": float(fitted[1].alpha_),
        "kernel_error": fitted[0].kernel_error(X),
        "accuracy": score,
    }


def ten_thousand(ten_thousand: int, new: int, landmarks: int, **_: int) -> dict[str, Any]:
    return learn(ten_thousand, new, landmarks)


def hundred_thousand(hundred_thousand: int, new: int, landmarks: int, **_: int) -> dict[str, Any]:
    return learn(hundred_thousand, new, landmarks)


def exact(exact: int, new: int, landmarks: int, **_: int) -> dict[str, Any]:
    """Accuracy of features and of the kernel itself, fitted to the same few sequences; what Gram matrices cost."""
    X, y = sequences(exact, 0, LONGEST)
    Z, labels = sequences(min(new, 500), 1, LONGEST)
    approximate = model(landmarks).fit(X, y)
    processor = time.process_time()
    kernel()(X)
    gram_seconds = time.process_time() - processor
    full = RNTKRidgeClassifier(kernel(), alpha=approximate[1].alpha_).fit(X, y)
    return {
        "accuracy": float((full.predict(Z) == labels).mean()),
        "accuracy_of_features": float((approximate.predict(Z) == labels).mean()),
        "gram_processor_seconds": gram_seconds,
    }


PARTS = {"ten_thousand": ten_thousand, "hundred_thousand": hundred_thousand, "exact": exact}


def found(results: dict[str, Any]) -> dict[str, float]:
    """What the aims are for."""
    return {
        "ten_thousand": results["ten_thousand"]["seconds"],
        "hundred_thousand": results["hundred_thousand"]["seconds"],
        "milliseconds": max(results[part]["milliseconds"] for part in ("ten_thousand", "hundred_thousand")),
    }


if __name__ == "__main__":
    run_parts(__doc__, PARTS, QUICK, FULL, AIMS, found)
