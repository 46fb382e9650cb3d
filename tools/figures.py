"""Measured numbers on pages come from records: this finds each in its record, and writes it anew when that changes.

    python tools/figures.py            # write the pages' numbers and tables from the records
    python tools/figures.py --check    # only say what differs, and which numbers no record has

`SENTENCES` has, for every page, the pieces of its text that carry measured numbers, with fields of `facts()` in their
places: "wins {against_minirocket.wins}". `TABLES` makes whole tables, between the lines `<!-- table: NAME -->` and
`<!-- end -->`. On the pages of `MEASURED` no other numbers may stand, but for those of `PLAIN`, which nobody measures.
"""

from __future__ import annotations

import json
import re
import string
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "benchmarks" / "records"
RESULTS = ROOT / "results" / "full"

# ---- What the records say --------------------------------------------------------------------------------------------


def read(name: str) -> Any:
    return json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))


def study(name: str) -> Any:
    return json.loads((RESULTS / name / "record.json").read_text(encoding="utf-8"))


def compare(ours: dict[str, float], theirs: dict[str, float]) -> SimpleNamespace:
    """Wins, ties and losses over the data sets of both."""
    leads = [round(ours[name] - theirs[name], 9) for name in ours]
    wins, losses = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
    return SimpleNamespace(wins=wins, ties=len(leads) - wins - losses, losses=losses)


def classification() -> SimpleNamespace:
    """Accuracies of the default classifier and of others on the UCR sets, and what they cost."""
    record = study("rntk-tables")
    accuracies: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    for name, unit in record["units"].items():
        method = name.rpartition(".")[2]
        accuracies.setdefault(method, {})[unit["config"]["set"]] = unit["result"]["accuracy"]
        run = record["run"]["units"][name]
        cost = (run.get("timing") or {}).get("core_seconds") or run["seconds"]
        seconds[method] = seconds.get(method, 0.0) + cost
    return SimpleNamespace(
        sets=len(accuracies["rntk-fast"]),
        mean={method: fmean(each.values()) for method, each in accuracies.items()},
        seconds=seconds,
        against_minirocket=compare(accuracies["rntk-fast"], accuracies["minirocket"]),
        times_minirocket=seconds["rntk-fast"] / seconds["minirocket"],
    )


def claims() -> SimpleNamespace:
    """Verdicts of all studies, and what some claims found, by study and key."""
    verdicts: dict[str, int] = {}
    kinds: dict[str, dict[str, int]] = {}
    found: dict[str, dict[str, list[float]]] = {}
    for path in sorted(RESULTS.glob("*/record.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        kinds[record["study"]] = {}
        for claim in record["claims"]:
            verdicts[claim["verdict"]] = verdicts.get(claim["verdict"], 0) + 1
            kinds[record["study"]][claim["verdict"]] = kinds[record["study"]].get(claim["verdict"], 0) + 1
            numbers = [float(each.replace("−", "-")) for each in re.findall(r"[-+−]?\d+\.?\d*", claim["ours"])]
            found.setdefault(record["study"], {})[claim["key"]] = numbers
    return SimpleNamespace(verdicts=verdicts, kinds=kinds, found=found)


def unequal() -> SimpleNamespace:
    results = list(read("unequal")["results"].values())
    methods = results[0]
    return SimpleNamespace(
        sets=len(results),
        mean={method: fmean(each[method]["accuracy"] for each in results) for method in methods},
        seconds={method: sum(each[method]["core_seconds"] for each in results) for method in methods},
    )


def suggestion() -> SimpleNamespace:
    results = read("suggest")["results"]
    by = {
        method: {name: each[method]["accuracy"] for name, each in results.items()}
        for method in ("default", "suggested", "suggested, late")
    }
    return SimpleNamespace(
        sets=len(results),
        mean={method.replace("suggested, late", "late"): fmean(each.values()) for method, each in by.items()},
        against_default=compare(by["suggested"], by["default"]),
    )


def disk() -> SimpleNamespace:
    """Matrices on disk and landmarks, from the records of scaling and nystrom."""
    rows = {each["question"]: each for each in read("scaling")["results"]}
    asked = "K.{}: time per pair-step against kernel(X) at N=6000; N=20000, T=100"
    plain, packed = rows[asked.format("gram")], rows[asked.format("zarr")]
    per = "memory above that of a process that has compiled everything, N=20000"
    product = "K @ v, N=20000, checksums of all tiles included"
    sizes = [1 - each["ratio"] for name, each in rows.items() if name.startswith("compressed tiles")]
    nystrom = read("nystrom")
    return SimpleNamespace(
        seconds=[plain["seconds"], packed["seconds"]],
        ratio=[plain["ratio"], packed["ratio"]],
        written=rows["written to disk, N=10000, for every byte of the tiles"]["ratio"],
        saved=[100 * min(sizes), 100 * max(sizes)],
        share={
            f"{budget}MB": 100 * rows[f"memory taken, of a budget of {budget} MB, N=10000, T=100, float32"]["ratio"]
            for budget in (30, 100, 300)
        },
        megabytes=[1000 * rows[f"K.{each}: {per}"]["ratio"] for each in ("gram", "zarr")],
        product=[rows[f"K.{each}: {product}"]["ratio"] for each in ("gram", "zarr")],
        dask=[each["ratio"] for name, each in rows.items() if name.startswith("2 Dask workers")],
        sizes=nystrom["sizes"],
        found=nystrom["found"],
        large=nystrom["results"]["large"],
        streamed=nystrom["results"]["streamed"],
        stored=nystrom["results"]["on_disk"],
    )


def speed() -> SimpleNamespace:
    """Relative costs of one Gram matrix, of first calls and of gradients by inputs."""
    rows = {each["question"]: each.get("ratio") for each in read("gram")["results"]}
    cold = {each["question"]: each["seconds"] for each in read("cold")["results"]}
    costs = {name.replace(", T = ", " "): each for name, each in read("sensitivity")["costs"].items()}
    return SimpleNamespace(
        gradient=[rows["gradient, 3 hyperparameters (the default kernel)"], rows["gradient, 5 hyperparameters"]],
        ragged=[rows[f"ragged (100..300) per pair-step, {dtype}"] for dtype in ("float64", "float32")],
        depth=rows["depth 3 against depth 1"],
        long=rows["cost per pair-step, T=10000 against T=1000, N=60"],
        first=[cold["first RNTK()(X)"], cold["first RNTKClassifier().fit(X, y), less a second one"]],
        slopes={name: each["ratio"] for name, each in costs.items() if "ratio" in each},
        pairs=[costs[f"{name}, 10 000 independent pairs 100"]["seconds"] for name in ("relu", "erf")],
        search=read("search"),
    )


def printed() -> dict[str, float]:
    """Means of the columns that the RNTK paper prints, over the sets of the classification record."""
    table = json.loads((ROOT / "src/rntk/papers/rntk_table_2.json").read_text(encoding="utf-8"))["accuracy"]
    sets = {unit["config"]["set"] for unit in study("rntk-tables")["units"].values()}
    return {kernel: fmean(table[name][kernel] for name in sets) for kernel in ("RNTK", "NTK", "RBF", "POLY")}


def facts() -> dict[str, Any]:
    """All that sentences can name."""
    known = claims()
    steps = read("steps")
    few, many, exact = (steps["results"][part] for part in ("ten_thousand", "hundred_thousand", "exact"))
    return {
        "steps": steps,
        "few_steps": few,
        "many_steps": many,
        "step_errors": sorted(100 * part["kernel_error"] for part in (few, many)),
        "step_accuracies": [100 * exact["accuracy_of_features"], 100 * exact["accuracy"]],
        "ucr": classification(),
        "printed": printed(),
        "unequal": unequal(),
        "suggestion": suggestion(),
        "verdicts": known.verdicts,
        "kinds": known.kinds,
        "found": known.found,
        "first_over_last": 2 ** known.found["rntk-figure-3"]["reference"][-1],
        "shortfall": -known.found["rntk-tables"]["mean RNTK"][3],
        "slopes": slopes(),
        "disk": disk(),
        "speed": speed(),
    }


def slopes() -> SimpleNamespace:
    """Of the error of finite networks' kernels against their width, over all panels of Figure 2 on the right."""
    values = [numbers[0] for numbers in claims().found["rntk-figure-2-right"].values()]
    return SimpleNamespace(flattest=max(values), steepest=min(values))


# ---- Where they stand ------------------------------------------------------------------------------------------------

#: Pieces of pages with the fields of `facts()`. The written number is the field, formatted.
SENTENCES: dict[str, list[str]] = {
    "docs/accuracy.md": [
        "RNTK {ucr.mean[rntk]:.2f}, NTK {ucr.mean[ntk]:.2f}, RBF {ucr.mean[rbf]:.2f}, polynomial {ucr.mean[poly]:.2f}",
        "Mean over {unequal.sets} sets whose series differ in length",
        "On {suggestion.sets} UCR sets, in one support vector machine",
        "has {suggestion.mean[default]:.1f} %, the suggested kernel {suggestion.mean[suggested]:.1f} "
        "({suggestion.against_default.wins} wins, {suggestion.against_default.ties} ties, "
        '{suggestion.against_default.losses} losses), `emphasis="late"` {suggestion.mean[late]:.1f};',
        "by cross-validation, with labels, {ucr.mean[rntk]:.1f}.",
    ],
    "docs/research.md": [
        "slopes between {slopes.flattest:.2f} and {slopes.steepest:.2f} on",
        "Networks of width {found[rntk-theorem-2-ensemble][mean][0]:.0f}, trained, have a mean off the closed form by "
        "{found[rntk-theorem-2-ensemble][mean][1]:.2f} to {found[rntk-theorem-2-ensemble][mean][2]:.2f} of what chance "
        "makes of {found[rntk-theorem-2-ensemble][mean][3]:.0f} networks, and "
        "{found[rntk-theorem-2-ensemble][spread][1]:.2f} to {found[rntk-theorem-2-ensemble][spread][2]:.2f} of the",
        "Networks of width {found[linear-figures-1-2][figure 1][0]:.0f} train like their convolution: over the "
        "first ten epochs the curves differ by at most {found[linear-figures-1-2][figure 2][0]:.1f} % of",
        "R² in x and y {found[linear-table-1][limited, order][0]:.2f} and "
        "{found[linear-table-1][limited, order][1]:.2f} against {found[linear-table-1][limited, order][2]:.2f} and "
        "{found[linear-table-1][limited, order][3]:.2f}.",
        "{verdicts[reproduced]} claims reproduced, {verdicts[under conditions]} only under conditions, "
        "{verdicts[differs]} differ; of these, {kinds[errata][differs]} are",
        "on {ucr.sets} of its sets the RNTK has {ucr.mean[rntk]:.2f} % where {printed[RNTK]:.2f} is printed, "
        "NTK {ucr.mean[ntk]:.2f} ({printed[NTK]:.2f}), RBF {ucr.mean[rbf]:.2f} ({printed[RBF]:.2f}), "
        "polynomial {ucr.mean[poly]:.2f} ({printed[POLY]:.2f}).",
        "the RNTK is {shortfall:.2f} points below what is printed on average",
        "with single sets up to {found[rntk-tables][mean NTK][4]:.2f} points away",
        "the first fifth of the steps has {first_over_last:.0f} times the weight of the last",
        "An RNN of width {found[linear-theorem-4.1][bound][1]:.0f} exceeds it from lag "
        "{found[linear-theorem-4.1][bound][2]:.0f} on.",
        "were run on {found[rntk-tables-networks][mean GRU][0]:.0f} of 56 sets",
    ],
    "docs/speed.md": [
        "hyperparameters, beside the Gram matrix alone | {speed.gradient[0]:.1f} |",
        "the same for five hyperparameters | {speed.gradient[1]:.1f} |",
        "per pair and step, float64 | {speed.ragged[0]:.2f} |",
        "per pair and step, float32 | {speed.ragged[1]:.2f} |",
        "three layers, against one | {speed.depth:.1f} |",
        "ten times the length, per pair and step | {speed.long:.2f} |",
        "on a machine takes {speed.first[0]:.1f} s, the first `RNTKClassifier` {speed.first[1]:.1f} s more",
        "ReLU {speed.slopes[relu 100]:.1f}, erf {speed.slopes[erf 100]:.1f}, sin {speed.slopes[sin 100]:.1f}, tanh "
        "{speed.slopes[tanh 100]:.1f}, ReLU with three layers {speed.slopes[relu, depth 3 100]:.1f} for sequences of a "
        "hundred steps, and ReLU {speed.slopes[relu 1000]:.1f} for a thousand",
        "take {speed.pairs[0]:.2f} s with ReLU and {speed.pairs[1]:.2f} s with erf.",
        "on ECG200: {speed.search[rntk_seconds]:.0f} s, which is {speed.search[ratio]:.0f} times faster",
    ],
    "docs/scaling.md": [
        "float32: {disk.seconds[0]:.0f} s, compressed {disk.seconds[1]:.0f} s. Per pair and step that is "
        "{disk.ratio[0]:.2f} and {disk.ratio[1]:.2f} times the time of",
        "Nothing is written but tiles: {disk.written:.2f} bytes per byte. Compression takes {disk.saved[0]:.0f} to "
        "{disk.saved[1]:.0f} % off.",
        "{disk.share[30MB]:.0f} % of 30 MB, {disk.share[100MB]:.0f} % of 100 MB, {disk.share[300MB]:.0f} % of 300 MB.",
        "takes {disk.megabytes[0]:.0f} MB in float32, {disk.megabytes[1]:.0f} MB if they are compressed.",
        "{disk.product[0]:.1f} s from a plain store, {disk.product[1]:.1f} s from a compressed one.",
        "two Dask workers reached {disk.dask[0]:.2f} of the speed of two threads, and {disk.dask[2]:.2f} if they keep",
        "a ridge classifier, {disk.sizes[training]:,} sequences of 30 to 100 steps, {disk.sizes[landmarks]:,} "
        "landmarks, both directions: {disk.large[fit_seconds]:.0f} s to fit, {disk.large[predict_seconds]:.1f} s to "
        "predict {disk.sizes[new]:,}, {disk.found[gigabytes]:.1f} GB; on {disk.sizes[exact]:,} sequences "
        "{disk.found[points]:.2f} points of accuracy from",
        "with {steps[sizes][landmarks]} pieces of {steps[sizes][history]} steps and",
        "a fit to {steps[sizes][ten_thousand]:,} takes {few_steps[processor_seconds]:.0f} s of processor time, "
        "to {steps[sizes][hundred_thousand]:,} {many_steps[processor_seconds]:.0f} s and "
        "{many_steps[gigabytes]:.1f} GB, a prediction of one {steps[found][milliseconds]:.1f} ms.",
        "within {step_errors[0]:.1f} to {step_errors[1]:.1f} % of the kernel (`kernel_error`), and on "
        "{steps[sizes][exact]:,} sequences the features classify {step_accuracies[0]:.1f} % correctly, the exact "
        "kernel {step_accuracies[1]:.1f} %.",
        "by conjugate gradients, {disk.sizes[solved]:,} of them: {disk.streamed[iterations]} iterations, "
        "{disk.streamed[seconds]:.0f} s if tiles are computed every time, {disk.stored[seconds]:.0f} s with",
    ],
    "docs/tutorials/memory.md": [
        "({suggestion.mean[suggested]:.1f} against {suggestion.mean[default]:.1f} % of a single",
    ],
    "docs/tutorials/unequal-lengths.md": [
        "zero-padded series ({unequal.mean[svm padded]:.1f} against {unequal.mean[svm]:.1f} %)",
        "without padding ({unequal.mean[default]:.1f} against {unequal.mean[padded]:.1f} %)",
    ],
}


def paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_on_hyphens=False)


def milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def table_of_classifiers() -> Iterator[str]:
    """By halves where `benchmarks/classify.py` has left its record, otherwise the sets of the RNTK paper's tables."""
    if (RECORDS / "classify.json").exists():
        yield from table_by_halves(read("classify"))
        return
    ucr = classification()
    games = ucr.against_minirocket
    yield f"| {ucr.sets} UCR sets | mean accuracy | core seconds |"
    yield "|---|---|---|"
    for method, name in (
        ("rntk-fast", "`RNTKClassifier()`"),
        ("minirocket", "MiniRocket (aeon)"),
        ("rbf", "support vector machine, RBF"),
    ):
        yield f"| {name} | {ucr.mean[method]:.2f} | {ucr.seconds[method]:.0f} |"
    yield ""
    yield from paragraph(
        f"Against MiniRocket `RNTKClassifier()` wins {games.wins}, ties {games.ties} and loses {games.losses}, and "
        f"costs {ucr.times_minirocket:.0f} times as much. Its recipe was found by looking at test scores of these same "
        "sets, so they say how it compares there, not how it will on sets that nobody has looked at."
    )


def table_by_halves(record: dict[str, Any]) -> Iterator[str]:
    """Confirmation half first: mean accuracy, mean rank, and how often `RNTKClassifier()` wins, ties and loses."""
    halves = {half: record[half]["summary"] for half in ("confirmation", "development") if half in record}
    names = {
        "rntk": "`RNTKClassifier()`",
        "HC2": "HIVE-COTE 2",
        "MR-Hydra": "MultiRocket-Hydra",
        "MiniROCKET": "MiniRocket",
    }
    heads = [f"{half} half, {summary['sets']} sets | wins / ties / losses" for half, summary in halves.items()]
    yield f"| mean accuracy (mean rank) | {' | '.join(heads)} |"
    yield "|---" * (1 + 2 * len(halves)) + "|"
    for method, name in names.items():
        cells = []
        for summary in halves.values():
            found = summary[method]
            cells += [f"{found['mean']:.2f} ({found['mean_rank']:.2f})"]
            cells += [" / ".join(map(str, found.get("wins_ties_losses", [])))]
        yield f"| {name} | {' | '.join(cells)} |"
    costs = [
        f"on the {half} half `RNTKClassifier()` takes {summary['rntk seconds']:.0f}, MiniRocket in the same run "
        f"{summary['minirocket seconds']:.0f}"
        for half, summary in halves.items()
        if "minirocket seconds" in summary
    ]
    yield ""
    yield from paragraph(
        "The learner was tuned on the development half. The confirmation half was run twice, at the end: once for its "
        "scores, and again for costs only, with equal scores. Other classifiers stand with their published accuracies "
        f"on the same official split. Core seconds of fitting and predicting, one thread each: {'; '.join(costs)}."
    )


def table_of_unequal() -> Iterator[str]:
    found = unequal()
    names = {
        "default": "`RNTKClassifier()` on series as they come",
        "native": "the same, series z-normalised",
        "padded": "the same, z-normalised and padded with zeros",
        "svm": "one kernel in a support vector machine, z-normalised",
        "svm padded": "the same, padded with zeros",
        "gak": "tslearn's global alignment kernel in a support vector machine",
    }
    yield f"| {found.sets} sets | mean accuracy | core seconds |"
    yield "|---|---|---|"
    for method, name in names.items():
        yield f"| {name} | {found.mean[method]:.2f} | {found.seconds[method]:.0f} |"


def table_of_speed() -> Iterator[str]:
    rows = {each["question"]: each for each in read("gram")["results"]}
    yield "| task | rntk | plain C | NumPy | JAX | times the better of both | of C's time |"
    yield "|---|---|---|---|---|---|---|"
    tasks = [f"{readout}, {dtype}{bias}, {size}, T=300" for readout, size in (("last", "N=600"), ("mean", "N=60"))
             for dtype in ("float64", "float32") for bias in ("", ", bias")]  # fmt: skip
    for task in [*tasks, "MLP NTK, depth 3, N=1000, m=100"]:
        row, of_c = rows.get(task), rows.get(f"of plain C: {task}")
        seconds = {**(of_c or row)["seconds"], **(row["seconds"] if row else {})}
        times = [milliseconds(seconds.get(name)) for name in ("rntk", "c", "numpy", "jax")]
        ratios = [f"{row['ratio']:.1f}×" if row else "", f"{of_c['ratio']:.2f}" if of_c else ""]
        yield f"| {task} | " + " | ".join([*times, *ratios]) + " |"


def table_of_neural_tangents() -> Iterator[str]:
    found = {(row["activation"], row["call"]): row["ratio"] for row in read("neural_tangents")["results"]}
    names = {"relu": "ReLU", "erf": "erf", "sin": "sin", "gelu": "GELU"}
    yield "| | " + " | ".join(names.values()) + " |"
    yield "|---|" + "---|" * len(names)
    for call in ("K(X)", "K(X, Y)"):
        yield f"| `{call}` | " + " | ".join(f"{found[name, call]:.1f}×" for name in names) + " |"


def table_of_costs() -> Iterator[str]:
    rows = {each["question"]: each["ratio"] for each in read("scaling")["results"]}
    yield "| network | $b$, per pair and step | $a$, per step of a sequence |"
    yield "|---|---|---|"
    for name, stated in (
        ("ReLU, last, float32", "ReLU, `last`, float32"),
        ("ReLU, last, float64", "ReLU, `last`, float64"),
        ("ReLU, 3 layers, float32", "ReLU, three layers, float32"),
        ("ReLU, mean, float32 (per pair of steps)", "ReLU, `mean`, float32, per pair of steps"),
        ("erf, last, float64", "erf, `last`, float64"),
        ("tanh, last, float64", r"tanh, `last`, float64, $\sigma_w = 1$, $\sigma_u = 0.3$"),
    ):
        once = rows[f"one core, per step of a sequence, once: {name}"] / 1000
        shown = "too little to measure" if once == 0 else f"{once:.2g} µs"
        yield f"| {stated} | {rows[f'one core, per pair and step: {name}']:.2g} ns | {shown} |"


TABLES = {
    "classifiers": table_of_classifiers,
    "unequal": table_of_unequal,
    "speed": table_of_speed,
    "neural-tangents": table_of_neural_tangents,
    "costs": table_of_costs,
}

#: Pages on which every number is measured, or plain.
MEASURED = ("README.md", "docs/index.md", "docs/research.md", "docs/accuracy.md", "docs/speed.md", "docs/scaling.md")
#: What nobody measures: names, versions, sizes of what was asked, definitions.
PLAIN = (
    r"Python 3\.11",
    r"HIVE-COTE 2",
    r"arXiv:2006\.10246",
    r"neural-tangents 0\.6\.5",
    r"AVX-512|gcc -O3|float(32|64)|ECG200|LZ4",
    r"(Table|section|step|Theorem) \d[\d.]*",
    r"σ = \(1, 0\.01, 0\.05, 0\)",
    r"up to some \d[\d ]*|\d[\d ]* and more",
    r"of 100 steps|\d+ threads|(of|times) \d+ sequences|default of 1 GB|tiles of 2000 × 2000",
)

# ---- Between the two -------------------------------------------------------------------------------------------------

#: What is no measurement and says so.
PROJECTION = re.compile(r"<!-- projection -->.*?<!-- end -->", re.DOTALL)
TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBER = r"[-+−]?\d[\d,]*\.?\d*"


def pattern_of(template: str) -> re.Pattern[str]:
    """Finds a sentence whatever its numbers are, and however its lines are broken."""
    parts = []
    for text, field, _, _ in string.Formatter().parse(template):
        parts.append(r"\s+".join(map(re.escape, re.split(r"\s+", text))))
        if field is not None:
            parts.append(f"({NUMBER})")
    return re.compile("".join(parts))


def values_of(template: str, known: dict[str, Any]) -> list[str]:
    fields = [(field, spec) for _, field, spec, _ in string.Formatter().parse(template) if field is not None]
    return [f"{{{field}:{spec}}}".format(**known) for field, spec in fields]


def renew(text: str, page: str, known: dict[str, Any]) -> tuple[str, list[str]]:
    """The page with the numbers of the records, and the sentences that aren't on it once."""
    text = TABLE.sub(lambda found: "\n".join([found[1], *TABLES[found[2]](), "", found[3]]), text)
    missing = []
    for template in SENTENCES.get(page, ()):
        places = list(pattern_of(template).finditer(text))
        if len(places) != 1:
            missing.append(template)
            continue
        found = places[0]
        for k, value in reversed(list(enumerate(values_of(template, known), 1))):
            text = text[: found.start(k)] + value + text[found.end(k) :]
    return text, missing


def without_record(text: str, page: str) -> list[str]:
    """Numbers in the prose of a page that no sentence, no table and no word of `PLAIN` covers."""
    text = PROJECTION.sub("", TABLE.sub("", text))
    for template in SENTENCES.get(page, ()):
        text = pattern_of(template).sub(" ", text)
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$|`[^`\n]*`|\]\([^)]*\)|\$[^$\n]*\$|<!--.*?-->", " ", text, flags=re.MULTILINE)
    for each in PLAIN:
        text = re.sub(each, " ", text)
    return [line.strip() for line in text.splitlines() if re.search(r"\d", line)]


def main() -> int:
    check, known, failed = "--check" in sys.argv[1:], facts(), False
    for page in sorted({*SENTENCES, *MEASURED}):
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        renewed, missing = renew(text, page, known)
        left = without_record(renewed, page) if page in MEASURED else []
        for sentence in missing:
            print(f"{page} does not say once: {sentence}")
        for line in left:
            print(f"{page} has a number without a record: {line}")
        if renewed != text:
            print(f"{page}: {'differs from its records' if check else 'written anew'}")
            if not check:
                path.write_text(renewed, encoding="utf-8")
        failed |= bool(missing or left or (check and renewed != text))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
