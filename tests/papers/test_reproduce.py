"""Runs that are interrupted, damaged or partly failing, and the report that is made of their records alone."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers import toy_studies
from helpers.toy_studies import Toy
from rntk import RNTK, papers
from rntk.errors import BusyError
from rntk.papers import (
    STUDIES,
    Claim,
    Finding,
    Mode,
    NotRunError,
    Proof,
    Results,
    Unit,
    mutants,
    reproduce,
    write_report,
)
from rntk.papers.record import DamagedRecordError, StudyFolder, digest, plain, read_sealed, write_sealed
from rntk.papers.report import judge_again, judged_by
from rntk.papers.study import EXACT, Mutant, mean_of, multiplied, times
from rntk.runtime import locked

pytest.importorskip("matplotlib", reason='figures need matplotlib: pip install "rntk[plot]"')
pytest.importorskip("jinja2", reason='the report needs jinja2: pip install "rntk[reproduce]"')


def run(out: Path, *studies: Toy, mode: Mode = Mode.QUICK, jobs: int = 1) -> tuple[list[dict], list[str]]:
    lines: list[str] = []
    return reproduce(studies, mode, out, jobs=jobs, say=lines.append, progress=False), lines


def what_was_found(folder: Path) -> dict[str, dict]:
    """Records without what tells one run from another: when and where units ran."""
    found = {}
    for path in sorted(folder.glob("*/record.json")):
        record = read_sealed(path)
        record.pop("run")
        found[path.parent.name] = record
    return found


def figures_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*/*.svg"))}


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """A function that counts the units computed so far."""
    path = tmp_path / "calls"
    monkeypatch.setenv("TOY_CALLS", str(path))
    return lambda: path.read_text().splitlines() if path.exists() else []


def test_record_says_everything(tmp_path):
    (record,), lines = run(tmp_path, Toy())
    stored = read_sealed(tmp_path / "quick" / "toy" / "record.json")
    assert stored["claims"] == record["claims"]
    assert [claim["verdict"] for claim in stored["claims"]] == ["reproduced", "differs"]
    assert stored["claims"][0]["reason"] == "" and stored["claims"][1]["reason"] == "it never was"
    assert stored["claims"][1]["paper"] == "101"
    assert stored["units"]["seed-3"]["config"]["random_state"] == 3
    assert stored["units"]["seed-3"]["result"]["nothing"] is None  # JSON has no NaN
    (place,) = stored["run"]["environments"].values()
    assert place["machine"]["cores"] >= 1 and {"python", "rntk", "numpy"} <= set(place["versions"])
    assert all(unit["seconds"] >= 0 for unit in stored["run"]["units"].values())
    assert stored["command"] == "rntk reproduce toy --quick"
    assert {path.name for path in (tmp_path / "quick" / "toy").iterdir()} == {"record.json", "means.png", "means.svg"}
    assert lines == ["toy: 1 reproduced, 1 differs"]


def test_finished_units_are_not_computed_again(tmp_path, calls):
    run(tmp_path, Toy(units=3))
    assert len(calls()) == 3
    run(tmp_path, Toy(units=3))
    assert len(calls()) == 3
    run(tmp_path, Toy(units=5))  # two more: only those
    assert len(calls()) == 5
    run(tmp_path, Toy(units=5), mode=Mode.FULL)  # other settings are other results, kept elsewhere
    assert len(calls()) == 10
    changed = Toy(units=5)
    changed.revision = 2
    run(tmp_path, changed)
    assert len(calls()) == 15


@pytest.mark.parametrize("jobs", [1, 2])
def test_failed_unit_stops_nothing_else(tmp_path, jobs):
    (bad, good), lines = run(tmp_path, Toy("bad", do={1: "fail"}), Toy("good"), jobs=jobs)
    assert "this unit fails" in bad["failures"]["seed-1"]
    assert any("bad, seed-1 failed: ValueError: this unit fails" in line for line in lines)
    verdicts = {claim["key"]: claim for claim in bad["claims"]}
    assert verdicts["small"]["verdict"] == "reproduced"
    assert verdicts["large"]["verdict"] == "not run" and "this unit fails" in verdicts["large"]["reason"]
    assert len(bad["units"]) == 5 and not good["failures"]
    (again,), _ = run(tmp_path, Toy("bad"))  # what was wrong is repaired: its config differs, so it runs
    assert not again["failures"] and len(again["units"]) == 6


def test_unit_whose_process_dies_is_reported(tmp_path):
    (bad, good), _ = run(tmp_path, Toy("bad", units=3, do={2: "die"}), Toy("good", units=3), jobs=2)
    assert set(bad["failures"]) == {"seed-2"} and "died" in bad["failures"]["seed-2"]
    assert len(bad["units"]) == 2 and len(good["units"]) == 3


def test_study_without_data_says_why(tmp_path):
    (record,), _ = run(tmp_path, Toy(units=0))
    assert [claim["verdict"] for claim in record["claims"]] == ["not run", "not run"]
    assert all(claim["reason"] == "there is no data; pass --data" for claim in record["claims"])
    assert record["figures"] == []


def test_missing_package_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("rntk.papers.study.find_spec", lambda name: None)
    toy = Toy()
    toy.extras = ("finite",)
    (record,), _ = run(tmp_path, toy)
    assert record["claims"][0]["reason"] == 'jax is not installed; pip install "rntk[finite]"'


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "edit"])
def test_damaged_record_is_noticed_and_computed_anew(tmp_path, calls, harm):
    run(tmp_path, Toy())
    path = tmp_path / "quick" / "toy" / "record.json"
    before, text = what_was_found(tmp_path / "quick"), path.read_text()
    if harm == "flip":
        at = text.index('"mean": ') + 11
        path.write_text(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :])
    elif harm == "cut":
        path.write_text(text[: len(text) // 2])
    elif harm == "empty":
        path.write_text("")
    else:
        path.write_text(text.replace('"verdict": "differs"', '"verdict": "reproduced"'))
    page = write_report(tmp_path, Mode.QUICK, {"toy": Toy()}).read_text()
    assert "Damaged records" in page and "Means of random numbers" not in page
    _, lines = run(tmp_path, Toy())
    assert any("record.json" in line and "computed anew" in line for line in lines)
    assert len(calls()) == 12
    assert what_was_found(tmp_path / "quick") == before
    assert (path.parent / "record.json.damaged").exists()


def test_seals(tmp_path):
    path = tmp_path / "a" / "record.json"
    write_sealed(path, {"x": [1.5, None], "name": "σ"})
    assert read_sealed(path) == {"x": [1.5, None], "name": "σ"}
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 2, "b": 1})
    path.write_text('{"x": 1}')
    with pytest.raises(DamagedRecordError, match="no seal"):
        read_sealed(path)


def test_two_runs_do_not_share_a_folder(tmp_path):
    (tmp_path / "quick").mkdir()
    with locked(tmp_path / "quick" / ".lock"), pytest.raises(BusyError, match="another run"):
        run(tmp_path, Toy())


def test_results_say_why_something_is_missing():
    results = Results({"a-1": {"x": 1}}, {"b": "b failed"}, "no data")
    assert results["a-1"].x == 1 and len(results.all()) == 1
    with pytest.raises(NotRunError, match="b failed"):
        results["b"]
    with pytest.raises(NotRunError, match="no data"):
        results["c"]
    with pytest.raises(NotRunError, match="c has not run"):
        Results({})["c"]
    with pytest.raises(NotRunError, match="nothing has run"):
        Results({}).all()


def test_results_are_attributes_and_arrays():
    values = {"table": [[1, 2.5], [3, 4]], "names": ["a", "b"], "ragged": [[1], [2, 3]], "cases": [{"p": [0.5]}]}
    found = Results({"unit": {**values, "kernel": "RNTK()", "by_name": {"x": [1, 2]}, "gap": [0.5, None]}})["unit"]
    assert found.table.shape == (2, 2) and found.table.dtype == float and found.by_name["x"].dtype.kind == "i"
    assert found.names == ["a", "b"] and [len(each) for each in found.ragged] == [1, 2]
    assert found.cases[0]["p"].tolist() == [0.5] and found.kernel == "RNTK()" and found.gap == [0.5, None]


def test_claims_are_judged_by_their_keys_as_far_as_results_go():
    class Broken(Toy):
        def judge(self, results):
            yield Finding("large", True, "fine", EXACT)
            yield Finding("no claim of this study", True, "", EXACT)
            raise ZeroDivisionError("of a judge")

    small, large = Broken().verdicts(Results({"seed-1": {"mean": 1.0}}))
    assert large["verdict"] == "reproduced"
    assert small["verdict"] == "not run" and small["reason"] == "could not be judged: ZeroDivisionError: of a judge"

    class Silent(Toy):
        def judge(self, results):
            yield from ()

    reasons = [row["reason"] for row in Silent().verdicts(Results({}, {"seed-1": "seed-1 failed"}))]
    assert reasons == ["too little has run to say", "seed-1 failed"]


def test_interrupt_leaves_records_of_what_is_finished(tmp_path, calls):
    class Interrupted(Toy):
        def compute(self, data, *, random_state, **config):
            if random_state == 3:
                raise KeyboardInterrupt
            return super().compute(data, random_state=random_state, **config)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Interrupted())
    record = read_sealed(tmp_path / "quick" / "toy" / "record.json")
    assert list(record["units"]) == ["seed-0", "seed-1", "seed-2"]
    assert record["obstacle"] == "interrupted after 3 of 6 units; the same command goes on"
    (whole,), _ = run(tmp_path, Toy())
    assert len(whole["units"]) == 6 and whole["obstacle"] == "" and len(calls()) == 6


# -- killed ----------------------------------------------------------------------------------


def start(out: Path, jobs: int, calls: Path) -> subprocess.Popen:
    here = Path(toy_studies.__file__).parent
    command = [sys.executable, str(here / "toy_studies.py"), str(out), str(jobs)]
    environment = {**os.environ, "MPLBACKEND": "Agg", "TOY_CALLS": str(calls)}
    return subprocess.Popen(command, start_new_session=True, env=environment)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_ten_kills_leave_the_records_of_an_undisturbed_run(tmp_path):
    calm, torn, calls = tmp_path / "calm", tmp_path / "torn", tmp_path / "calls"
    assert start(calm, 2, tmp_path / "calm calls").wait(120) == 0
    moments = random.Random(0)

    def computed() -> int:
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    for k in range(10):
        before = computed()
        process = start(torn, jobs=1 + k % 2, calls=calls)
        # Somewhere between the first unit of this run and the one after next, however slow the machine is.
        while computed() == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(moments.uniform(0, 0.1))
        assert process.poll() is None, "the run ended before it was killed"
        process.send_signal(signal.SIGKILL)  # the run itself, not what it started
        process.wait(30)
    assert start(torn, 2, calls).wait(120) == 0
    assert what_was_found(torn / "quick") == what_was_found(calm / "quick")
    assert figures_in(torn / "quick") == figures_in(calm / "quick")
    assert not list(torn.glob("quick/*/units/*.json")) and not list(torn.rglob("*.damaged"))
    # What a kill costs is what was under way: at most one unit for each process, here two.
    units = sum(len(record["units"]) for record in what_was_found(torn / "quick").values())
    assert units <= computed() <= units + 2 * 10


# -- report ----------------------------------------------------------------------------------


def test_report_comes_from_records_alone(tmp_path):
    toys = {name: Toy(name, units=2) for name in ("one", "two")}
    run(tmp_path, *toys.values())
    page = write_report(tmp_path, Mode.QUICK, toys).read_text()
    assert page.count('<section id="') == 2 and page.count("data:image/svg+xml;base64,") == 2
    assert "means are small &lt;&amp;&gt;" in page and "it never was" in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # nothing from outside
    (tmp_path / "quick" / "one" / "record.json").unlink()
    page = write_report(tmp_path, Mode.QUICK, toys).read_text()
    assert page.count('<section id="') == 1 and 'id="one"' not in page
    assert "No record here for: one" in page
    # A record that says something else makes another page: nothing in the page is known beforehand.
    path = tmp_path / "quick" / "two" / "record.json"
    record = read_sealed(path)
    record["claims"][1] |= {"ours": "123456.789", "verdict": "reproduced"}
    write_sealed(path, record)
    page = write_report(tmp_path, Mode.QUICK, toys).read_text()
    assert "123456.789" in page and '<b class="reproduced">2</b>' in page


# -- the registry ----------------------------------------------------------------------------------


def test_studies_are_well_formed():
    names = [name for study in STUDIES.values() for name in (study.name, *study.aliases)]
    assert len(set(names)) == len(names)
    for study in STUDIES.values():
        claims = study.claims
        assert claims and len({claim.key for claim in claims}) == len(claims)
        for mode in Mode:
            try:
                units = study.units(mode, None)
            except NotRunError as why:
                assert study.needs and "--data" in str(why)
                continue
            assert len({unit.name for unit in units}) == len(units)
            assert all(re.fullmatch(r"[a-z0-9.-]+", unit.name) for unit in units)
            json.dumps([unit.config for unit in units], allow_nan=False)
        # Without results nothing is judged, and nothing is claimed.
        rows = study.verdicts(Results({}, otherwise="nothing ran"))
        assert {row["verdict"] for row in rows} == {"not run"} and {row["reason"] for row in rows} == {"nothing ran"}
        with pytest.raises(NotRunError):
            study.figures(Results({}))


# -- what was committed ----------------------------------------------------------------------------

RESULTS = Path(__file__).resolve().parents[2] / "results"
COMMITTED = sorted(RESULTS.glob("*/*/record.json"))


def test_every_study_has_a_committed_record():
    assert {path.parent.name for path in RESULTS.glob("full/*/record.json")} == set(STUDIES)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_committed_records_are_found_and_judged_as_today(path):
    """Names, settings and revisions are those of the records, so that a run takes what is there; and verdicts are those
    that today's criteria give.
    """
    record = read_sealed(path)
    study = STUDIES[record["study"]]
    folder = StudyFolder(path.parent, study)
    assert all(folder.key(Unit(name, unit["config"])) == unit["key"] for name, unit in record["units"].items())
    try:
        there = {unit.name: plain(unit.config) for unit in study.units(Mode(record["mode"]), None)}
    except NotRunError:
        there = {}  # its data isn't here
    for name, config in there.items():
        if "files" not in config:  # of data sets, which may differ
            assert record["units"][name]["config"] == config
    assert judged_by(study, record) == record, "rntk reproduce --report --full judges it again"
    assert not folder.damage


def test_judging_the_committed_records_again_gives_the_committed_report_byte_for_byte(tmp_path):
    shutil.copytree(RESULTS, tmp_path / "results")
    written = (tmp_path / "results" / "full" / "report.html").read_bytes()
    judge_again(tmp_path / "results", Mode.FULL, STUDIES)
    assert write_report(tmp_path / "results", Mode.FULL, STUDIES).read_bytes() == written


def test_every_committed_verdict_says_what_it_rests_on():
    for path in COMMITTED:
        for row in read_sealed(path)["claims"]:
            assert re.fullmatch(r"2026-\d\d-\d\d", row["since"]) and isinstance(row["before"], bool)
            assert all(each["words"] and each["reason"] and each["since"] <= row["since"] for each in row["history"])
            if row["verdict"] in ("reproduced", "under conditions", "differs"):
                assert row["seeds"] == 0 or row["seeds"] >= 10 or row["one_run"], (path, row["key"])
                assert row["seeds"] == 0 or row["one_run"] or row["power"] >= row["error"] >= 0, (path, row["key"])


# -- mutants ---------------------------------------------------------------------------------------


def test_no_committed_claim_survives_a_mutant_and_every_one_that_holds_has_one():
    rows = read_sealed(RESULTS / "mutants.json")["mutants"]
    assert rows and all(row["killed"] for row in rows)
    tried = {(row["study"], row["claim"]) for row in rows}
    for path in RESULTS.glob("full/*/record.json"):
        record = read_sealed(path)
        holding = {row["key"] for row in record["claims"] if row["verdict"] in mutants.HOLDS}
        assert {(record["study"], key) for key in holding if not _misprinted(record, key)} <= tried, path


def _misprinted(record: dict, key: str) -> bool:
    return any(row["key"] == key and row["misprint"] for row in record["claims"])


def test_mutants_of_recorded_results_are_killed_again():
    cheap = ("rntk-figure-3", "linear-table-1", "rntk-tables", "rntk-printed-tables", "rntk-theorem-2-drift")
    rows = mutants.hunt([STUDIES[name] for name in cheap], RESULTS)
    assert len(rows) > 20 and all(row["killed"] for row in rows)


class Checked(Toy):
    """A study with a claim that any result passes, and one that notices a wrong factor."""

    claims = (Claim("blind", "something came out", "any number"), Claim("seeing", "means are small", "below 1"))
    mutants = (Mutant("means times 1000", ("seeing", "blind"), result=times(1000, "mean"), settings={}),)

    def judge(self, results):
        largest = np.abs([each.mean for each in results.all()]).max()
        for key, bound in (("blind", np.inf), ("seeing", 1)):
            yield Finding(key, bool(largest < bound), f"{largest:.3g}", Proof(20, 0.1, 1, "mean"))


def test_survivors_are_found(tmp_path):
    rows = mutants.hunt([Checked()], tmp_path)
    assert {row["claim"]: (row["unbroken"], row["verdict"], row["killed"]) for row in rows} == {
        "seeing": ("reproduced", "differs", True),
        "blind": ("reproduced", "reproduced", False),
    }
    mutants.keep(rows, tmp_path)
    mutants.keep([{**row, "study": "other"} for row in rows], tmp_path)
    assert len(read_sealed(tmp_path / "mutants.json")["mutants"]) == 4


def test_a_function_is_broken_while_its_mutant_is_tried_and_whole_afterwards():
    kernel, X = RNTK(), [[1.0, 2.0], [0.5]]
    whole = kernel(X)
    mutant = Mutant("kernel times 3", (), "rntk.kernels:RNTK.__call__", multiplied(3.0))
    with mutants._broken(mutant):
        np.testing.assert_array_equal(kernel(X), 3 * whole)
    np.testing.assert_array_equal(kernel(X), whole)


# -- what a verdict takes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "finding", "verdict", "reason"),
    [
        ({}, {"evidence": Proof(9, 0.1)}, "too few seeds", "9 of at least 10 draws"),
        ({}, {"evidence": Proof(9, 0.1), "holds": False}, "too few seeds", "9 of at least 10 draws"),
        ({}, {"evidence": Proof(10, 0.1)}, "reproduced", ""),
        ({"one_run": True}, {"evidence": Proof(1)}, "reproduced", ""),
        ({}, {"evidence": EXACT}, "reproduced", ""),
        ({}, {"evidence": EXACT, "condition": "for 1, not for 2"}, "under conditions", ""),
        ({"reason": "known"}, {"evidence": EXACT, "holds": False}, "differs", "known"),
        ({}, {"evidence": EXACT, "holds": None, "reason": "too little"}, "not run", "too little"),
        ({"note": True}, {"evidence": EXACT, "holds": False}, "note", ""),
    ],
)
def test_a_verdict_takes_ten_draws_where_anything_is_random(claim, finding, verdict, reason):
    class One(Toy):
        claims = (Claim("it", "it holds", "it does", **claim),)

        def judge(self, results):
            yield Finding(**{"key": "it", "holds": True, "ours": "1", **finding})

    (row,) = One().verdicts(Results({}))
    assert (row["verdict"], row["reason"]) == (verdict, reason)


def test_power_is_the_deviation_that_is_caught_with_95_percent():
    """By simulation: a check that allows 0.3 lets a mean that is off by so much pass once in twenty."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((20, 4000))
    mean, evidence = mean_of(samples[:, 0], "mean", tolerance=0.3)
    assert evidence.seeds == 20 and evidence.error == pytest.approx(samples[:, 0].std(ddof=1) / 20**0.5)
    power = evidence._replace(error=20**-0.5).power
    assert 0.92 < np.mean(np.abs(samples.mean(axis=0) + power) > 0.3) < 0.97
    assert mean == pytest.approx(samples[:, 0].mean())
    assert Proof().power is None


# -- in a notebook ---------------------------------------------------------------------------------


def test_a_study_runs_here_with_other_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = papers.run("rntk-printed-tables")
    assert [row["verdict"] for row in found.verdicts].count("differs") == 4 and list(found.figures()) == [
        "ranks-printed"
    ]
    one = papers.run("errata", only=["erf-value"], draws=5)
    assert list(one.results) == ["erf-value"] and one.results["erf-value"].draws == 5
    assert {row["verdict"] for row in one.verdicts} == {"differs", "not run"}
    same = papers.run("linear-theorem-3.3", mode="full", widths=[4, 8], seeds=2)
    assert same.results["networks"].errors.shape == (2, 2)
    assert not list(tmp_path.iterdir())  # nothing is written


def test_units_that_become_the_same_run_once():
    found = papers.run("linear-figure-3", delays=[1], width=10, repetitions=1, n_x=1)
    assert list(found.results) == ["delay-0"]


def test_run_says_what_it_cannot_do(monkeypatch):
    with pytest.raises(ValueError, match="there is no experiment 'rntk-figure-33'; did you mean rntk-figure-3"):
        papers.run("rntk-figure-33")
    with pytest.raises(ValueError, match="errata has no unit tanh; relu-slope"):
        papers.run("errata", only=["tanh"])
    with pytest.raises(TypeError, match="colour"):
        papers.run("rntk-printed-tables", colour="red")
    monkeypatch.delenv("RNTK_DATA", raising=False)
    with pytest.raises(NotRunError, match="GOOG"):
        papers.run("rntk-figure-4c")
    monkeypatch.setattr("rntk.papers.study.find_spec", lambda name: None)
    with pytest.raises(NotRunError, match=r"rntk\[finite\]"):
        papers.run("rntk-figure-2-left")


# -- the command -----------------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch, tmp_path):
    """`rntk reproduce` on toys, in an empty folder: exit code, and everything it printed."""
    from typer.testing import CliRunner

    from rntk.cli import app

    toys = {toy.name: toy for toy in (Toy("one", units=2), Toy("two", units=2, do={0: "fail"}), Toy("none", units=0))}
    toys["one"].aliases = ("first",)
    monkeypatch.setattr("rntk.papers.STUDIES", toys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RNTK_DATA", raising=False)

    def call(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["reproduce", *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return call


def test_command_runs_and_writes_into_results(command, tmp_path):
    code, said = command("first")
    assert code == 0 and "one: 1 reproduced, 1 differs" in said
    assert (tmp_path / "results" / "quick" / "report.html").exists()
    code, said = command("all", "--full", "--out", "elsewhere")
    assert code == 1 and "two, seed-0 failed: ValueError: this unit fails" in said and "tries them again" in said
    assert len(list((tmp_path / "elsewhere" / "full").glob("*/record.json"))) == 3


def test_command_makes_the_report_alone(command, tmp_path):
    command("one")
    (tmp_path / "results" / "quick" / "report.html").unlink()
    assert command("--report")[0] == 0
    assert (tmp_path / "results" / "quick" / "report.html").exists()


def test_command_hunts_mutants(command, tmp_path, monkeypatch):
    monkeypatch.setattr("rntk.papers.STUDIES", {"toy": Checked()})
    code, said = command("--mutants")
    assert code == 1 and "1 survive" in said and "means times 1000" in said
    assert (tmp_path / "results" / "mutants.json").exists()
    monkeypatch.setattr(Checked, "mutants", [replace(Checked.mutants[0], claims=("seeing",))])
    assert command("--mutants")[0] == 0


def test_command_lists_every_study(command):
    code, said = command("--list")
    assert code == 0 and "one, first" in said and "Figure 1" in said and "6 s" in said


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "say what to reproduce"),
        (("onne",), "there is no experiment 'onne'; did you mean one"),
        (("one", "--quick", "--full"), "exclude each other"),
        (("one", "--data", "nowhere"), "nowhere"),
        (("one", "--jobs", "0"), "--jobs"),
    ],
)
def test_command_refuses(command, arguments, why):
    code, said = command(*arguments)
    assert code == 2 and why in said and "Traceback" not in said


def test_command_refuses_a_folder_it_cannot_write(command, tmp_path):
    (tmp_path / "file").write_text("")
    code, said = command("one", "--out", "file")
    assert code == 2 and "--out file" in said
