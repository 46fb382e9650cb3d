"""Claims of experiments that judge themselves: their records carry checks, found here by what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...experiments.record import Check
from ..study import Claim, Finding, NotRunError, Results


def claims_from_checks(
    sentences: Mapping[str, str],
    checks: Callable[[Results], Sequence[Check]],
    criterion: Mapping[str, str] | str,
    *,
    paper: Mapping[str, str] | None = None,
    reasons: Mapping[str, str] | None = None,
) -> list[Claim]:
    """A claim for every sentence, judged by the check that says the same.

    Parameters
    ----------
    sentences : by key. checks : from results to checks; `NotRunError` without results.
    criterion, paper, reasons : of `Claim`, by key; one criterion may serve all.
    """

    def claim(key: str, sentence: str) -> Claim:
        def judge(results: Results) -> Finding:
            found = next((each for each in checks(results) if each.claim == sentence), None)
            if found is None:
                raise NotRunError("too little has run to say")
            return Finding(found.holds, found.evidence)

        rule = criterion if isinstance(criterion, str) else criterion.get(key, "")
        return Claim(key, sentence, (paper or {}).get(key, ""), rule, judge, (reasons or {}).get(key, ""))

    return [claim(key, sentence) for key, sentence in sentences.items()]
