"""Places where the papers print something else than what holds, judged one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...experiments.errata import ERRATA, WRONG, Errata, Erratum, errata
from ..study import Claim, Finding, Mode, Plain, Results, Study, Unit


class ErrataStudy(Study):
    name = "errata"
    title = "Errata: printed and corrected formulas before a judge that uses neither"
    source = "all papers; docs/errata.md"
    minutes = (0.5, 2)

    def units(self, mode: Mode, data: Path | None) -> list[Unit]:
        draws = {Mode.QUICK: 100, Mode.FULL: 400}[mode]
        return [
            Unit(name.replace("_", "-"), {"only": name, "draws": draws, "random_state": 0}, draws / 50)
            for name in ERRATA
        ]

    def compute(self, config: Plain, data: Path | None) -> Plain:
        return errata(config["draws"], random_state=config["random_state"], only=config["only"]).to_dict()

    def claims(self) -> list[Claim]:
        def claim(name: str) -> Claim:
            def judge(results: Results) -> Finding:
                entry = _entry(results, name)
                wrong = f"correct: {entry.correct}" if entry.verdict == WRONG else entry.verdict
                return Finding(entry.agrees(entry.printed_value), entry.check.evidence, f"{entry.where}: {wrong}")

            sentence = f"{name.replace('_', ' ')}: what is printed holds"
            return Claim(name, sentence, "see the record", "agrees with the judge within its uncertainty", judge)

        return [claim(name) for name in ERRATA]

    def figures(self, results: Results) -> dict[str, Any]:
        units = results.starting("")
        names = [name for name in ERRATA if name.replace("_", "-") in units]
        ax = Errata({name: _entry(results, name) for name in names}).plot()
        ax.figure.set_size_inches(10, 1.5 + 0.3 * len(names))
        return {"errata": ax.figure}


def _entry(results: Results, name: str) -> Erratum:
    return Errata.from_dict(results[name.replace("_", "-")]).entries[name]
