"""What the papers print differently from docs/theory.md, section 10, judged one by one.

Each erratum is a small example with three numbers: what the printed formula gives, what the corrected one gives (the
library's own value wherever it computes it), and what an independent judge finds: finite networks, random matrices,
quadrature, finite differences, plain gradient descent, or a count. The verdict is computed from the three.

`erratum` (the entry and its verdict), `networks` (the judge of recurrent kernels), then the errata themselves:
`recurrent` and `tables` for the RNTK paper, `linear` for the paper on linear RNNs. Here is the study of them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ....plot import COLOURS, axes_or_new
from ...study import EXACT, Claim, Finding, Mutant, Plain, Proof, Results, Study, Unit

from . import recurrent, tables, linear  # noqa: F401  # isort: skip
from .erratum import ERRATA, NEITHER, RIGHT, STANDARD_ERRORS, UNDECIDED, WRONG, Erratum

__all__ = ["ERRATA", "NEITHER", "RIGHT", "UNDECIDED", "WRONG", "ErrataStudy", "Erratum"]


#: What says how the papers are to be read, where they print nothing that could be wrong; and entries of a table that
#: are no counts, of which the right one isn't known.
NOTES = ("ties", "deviation", *(name for name in ERRATA if name.startswith("accuracy_on_")))


def _units(draws: int) -> tuple[Unit, ...]:
    return tuple(
        Unit(name.replace("_", "-"), {"only": name, "draws": draws, "random_state": 0}, draws / 50) for name in ERRATA
    )


def entries(results: Results) -> dict[str, Erratum]:
    """The errata that were judged, by name, in the order of `ERRATA`."""
    found = {name: dict(values) for result in results.all() for name, values in result.entries.items()}
    for values in found.values():
        del values["verdict"]
    return {name: Erratum(**found[name]) for name in ERRATA if name in found}


def _as_printed(name: str, result: Plain) -> None:
    for entry in result["entries"].values():
        entry["judge_value"] = entry["printed_value"]


class ErrataStudy(Study):
    """Printed and corrected formulas before their judges."""

    name = "errata"
    title = "Errata: printed and corrected formulas before a judge that uses neither"
    source = "all papers; docs/errata.md"
    minutes = (0.5, 2)
    quick = _units(100)
    full = _units(400)
    claims = tuple(
        Claim(
            name,
            f"{name.replace('_', ' ')}: what is printed holds",
            "agrees with the judge within its uncertainty",
            "see the record",
            unit=name.replace("_", "-"),
            misprint=True,
            note=name in NOTES,
        )
        for name in ERRATA
    )

    mutants = (
        Mutant(
            "a judge that says what is printed",
            tuple(name for name in ERRATA if name not in NOTES),
            result=_as_printed,
            misprint=True,
        ),
    )

    def compute(self, data: Path | None, *, only: str, draws: int, random_state: int = 0) -> Plain:
        """The erratum of this name; every one has its own stream of random numbers."""
        found = ERRATA[only](np.random.default_rng([random_state, *only.encode()]), draws)
        return {"entries": {only: found.to_dict()}, "draws": draws, "random_state": random_state}

    def judge(self, results: Results) -> Iterator[Finding]:
        """Whether what is printed holds; if not, what does."""
        draws = {name: int(result.draws) for result in results.all() for name in result.entries}
        for name, entry in entries(results).items():
            wrong = f"correct: {entry.correct}" if entry.verdict == WRONG else entry.verdict
            values = f"printed {entry.printed_value:.6g}, corrected {entry.correct_value:.6g}"
            judged = f"{'reach' if entry.bound else 'say'} {entry.judge_value:.6g} ± {entry.uncertainty:.1g}"
            ours = f"{entry.example}: {values}; {entry.judge} {judged}"
            of = "judge, in the unit of the values"
            error = entry.uncertainty / STANDARD_ERRORS
            weight = Proof(draws[name], error, entry.uncertainty, of) if entry.drawn else EXACT
            yield Finding(name, entry.agrees(entry.printed_value), ours, weight, f"{entry.where}: {wrong}")

    def figures(self, results: Results) -> dict[str, Any]:
        """How far printed and corrected values lie from the judge, relative to it.

        The axis is linear up to a ten-thousandth and logarithmic beyond, so that a wrong digit and a wrong power of the
        width fit on it.
        """
        found = list(entries(results).values())
        ax = axes_or_new()
        rows = np.arange(len(found))[::-1]
        judged = np.array([entry.judge_value for entry in found])
        allowed = np.array([entry.uncertainty for entry in found]) / np.abs(judged)
        label = "what the judge allows"
        ax.errorbar(
            np.zeros(len(rows)), rows, xerr=allowed, fmt="none", ecolor="grey", elinewidth=6, alpha=0.4, label=label
        )
        for values, label, marker, colour in (
            ([entry.printed_value for entry in found], "printed", "x", COLOURS[1]),
            ([entry.correct_value for entry in found], "corrected", "o", COLOURS[0]),
        ):
            ax.plot(np.array(values) / judged - 1, rows, marker, color=colour, label=label)
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.set_xscale("symlog", linthresh=1e-4)
        ax.margins(x=0.1)
        ax.set_yticks(rows, [entry.where + (" (upper bounds)" if entry.bound else "") for entry in found])
        ax.set(xlabel="value / judge - 1", ylabel="place in the papers", title="errata before their judges")
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3)
        ax.figure.set_size_inches(10, 1.5 + 0.3 * len(found))
        return {"errata": ax.figure}
