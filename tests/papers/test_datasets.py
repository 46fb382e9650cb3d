"""Data sets by name: the same from every format, never with other sizes than the archive's, and errors that teach."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rntk.io import DataFileError
from rntk.papers import data as datasets
from rntk.papers.data import archive_facts, available, find_prices, find_recording, load, load_prices
from rntk.papers.data import bundled as bundled_module
from rntk.papers.printed import rntk_table_2
from rntk.sequences import SequenceBatch

needs_aeon = pytest.mark.skipif(find_spec("aeon") is None, reason="aeon is not installed")

#: A tiny problem of two unequal lengths, the third training sequence with a gap.
TRAIN = [([0.5, 0.25, -1.0], 1), ([2.0, 3.0], 2), ([4.0, None, 6.0], 1)]
TEST = [([7.0, 8.0], 2), ([9.0, 1e-3, 5.0], 1)]
FILLED = [[0.5, 0.25, -1.0], [2.0, 3.0], [4.0, 5.0, 6.0]]


def _padded(x: list, gap: str) -> list[str]:
    return [gap if value is None else repr(value) for value in x + [None] * (3 - len(x))]


def as_tsv(rows: list) -> str:
    return "".join("\t".join([str(y), *_padded(x, "NaN")]) + "\n" for x, y in rows)


def as_txt(rows: list) -> str:
    return "".join("  ".join([f"{y:.7e}", *_padded(x, "NaN")]) + "\n" for x, y in rows)


def as_ts(rows: list) -> str:
    lines = [",".join("?" if value is None else repr(value) for value in x) + f":{y}\n" for x, y in rows]
    return "@univariate true\n@classLabel true 1 2\n@data\n" + "".join(lines)


def as_arff(rows: list) -> str:
    steps = "".join(f"@attribute t{k} numeric\n" for k in range(3))
    lines = "".join(",".join([*_padded(x, "?"), str(y)]) + "\n" for x, y in rows)
    return f"@relation toy\n{steps}@attribute target {{1,2}}\n@data\n{lines}"


FORMATS = {".tsv": as_tsv, ".txt": as_txt, ".ts": as_ts, ".arff": as_arff}


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    """Tests see no data folder of whoever runs them."""
    monkeypatch.delenv("RNTK_DATA", raising=False)


@pytest.fixture
def no_aeon(monkeypatch):
    monkeypatch.setattr(bundled_module, "find_spec", lambda name: None)


def put(folder: Path, name: str = "Toy", suffix: str = ".tsv", train: list = TRAIN, test: list = TEST) -> Path:
    """Write both files of a set; return the training file."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (("TRAIN", train), ("TEST", test)):
        (folder / f"{name}_{part}{suffix}").write_text(FORMATS[suffix](rows))
    return folder / f"{name}_TRAIN{suffix}"


def refusal_of(*args, **options) -> str:
    with pytest.raises(DataFileError) as caught:
        load(*args, **options)
    assert caught.value.problems
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rows_of(batch: SequenceBatch) -> list:
    return [x[:, 0].tolist() for x in batch]


# ---- Loading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_set(tmp_path, suffix):
    path = put(tmp_path / "Toy", suffix=suffix)
    data = load("Toy", tmp_path)
    assert data.name == "Toy"
    assert data.source == str(path)
    assert type(data.train) is SequenceBatch
    assert data.train.dtype == np.float64
    assert rows_of(data.train) == FILLED
    assert rows_of(data.test) == [x for x, _ in TEST]
    assert data.train_labels.tolist() == [1, 2, 1]
    assert data.test_labels.tolist() == [2, 1]
    assert data.train_labels.dtype == data.test_labels.dtype == np.int64
    assert data.notes == ("no sizes known to compare with",)
    assert "the value is missing" in _refused_file(tmp_path, missing="error")


def _refused_file(folder: Path, **options) -> str:
    with pytest.raises(DataFileError) as caught:
        load("Toy", folder, **options)
    return str(caught.value)


def test_several_channels_in_both_formats_that_hold_them(tmp_path):
    ts = "@classLabel true a b\n@data\n1,2:3,4:a\n5:6:b\n"
    arff = (
        "@relation x\n@attribute r relational\n@attribute t0 real\n@attribute t1 real\n@end r\n@attribute c {a,b}\n"
        "@data\n'1,2\\n3,4',a\n'5,?\\n6,?',b\n"
    )
    for suffix, text in ((".ts", ts), (".arff", arff)):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        for part in ("TRAIN", "TEST"):
            (folder / f"Toy_{part}{suffix}").write_text(text)
        data = load("Toy", folder)
        assert [x.tolist() for x in data.train] == [[[1.0, 3.0], [2.0, 4.0]], [[5.0, 6.0]]]
        assert data.test_labels.tolist() == ["a", "b"]


def test_record_is_frozen_and_prints_in_one_line(tmp_path):
    put(tmp_path)
    data = load("Toy", tmp_path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    assert repr(data).startswith("DataSet('Toy', train=SequenceBatch(3 sequences, lengths 2 to 3, 1 channel, float64)")
    assert len(repr(data).splitlines()) == 1


@pytest.mark.parametrize("place", [".", "Toy", "toy", "ucr", "ucr/Toy", "ucr/TOY"])
def test_places(tmp_path, place):
    put(tmp_path / place)
    assert load("Toy", tmp_path).train_labels.tolist() == [1, 2, 1]
    assert load("Toy", str(tmp_path)).name == "Toy"


@pytest.mark.parametrize("place", ["ucr/other", "a/b/Toy", ".hidden", "ucr/.Toy"])
def test_no_places(tmp_path, place):
    put(tmp_path / place)
    assert "Toy_TRAIN and Toy_TEST" in refusal_of("Toy", tmp_path)


def test_the_nearest_counts_then_the_suffix(tmp_path):
    put(tmp_path / "ucr" / "Toy", suffix=".tsv")
    near = put(tmp_path / "Toy", suffix=".arff")
    assert load("Toy", tmp_path).source == str(near)
    for suffix in (".ts", ".txt", ".tsv"):
        nearer = put(tmp_path / "Toy", suffix=suffix)
        assert load("Toy", tmp_path).source == str(nearer)


def test_names_in_any_case_and_the_archives_spelling(tmp_path):
    put(tmp_path, name="faceALL")
    for name in ("Faceall", "FaceAll", " faceall "):
        assert load(name, tmp_path, check=False).name == "FaceAll"
    assert available(tmp_path)["FaceAll"].endswith("faceALL_TRAIN.tsv")
    put(tmp_path, name="MyOwn")
    assert load("myown", tmp_path).name == "MyOwn"
    (tmp_path / "Odd_train.TSV").write_text("1\t2\n")
    (tmp_path / "ODD_Test.tsv").write_text("1\t2\n")
    assert load("odd", tmp_path).name == "Odd"


def test_environment_names_the_folder(tmp_path, monkeypatch, no_aeon):
    put(tmp_path / "here")
    put(tmp_path / "there", name="Other")
    monkeypatch.setenv("RNTK_DATA", str(tmp_path / "here"))
    assert load("Toy").name == "Toy"
    assert set(available()) == {"Toy"}
    assert set(available(tmp_path / "there")) == {"Other"}  # what is passed counts alone
    assert str(tmp_path / "there") in refusal_of("Toy", tmp_path / "there")
    monkeypatch.setenv("RNTK_DATA", str(tmp_path / "nowhere"))
    assert "the environment variable RNTK_DATA says that data are there" in refusal_of("Toy")
    monkeypatch.setenv("RNTK_DATA", " ")
    assert available() == {}


def test_available_in_order_with_where(tmp_path, no_aeon):
    b, a = put(tmp_path / "x" / "b", name="b"), put(tmp_path, name="A")
    (tmp_path / "Half_TRAIN.tsv").write_text("1\t2\n")
    (tmp_path / "C_TRAIN.csv").write_text("1,2\n")
    assert list(available(tmp_path).items()) == [("A", str(a)), ("b", str(b))]


# ---- Errors ------------------------------------------------------------------------------------------------


def test_not_found_says_what_where_and_how(tmp_path, no_aeon):
    put(tmp_path)
    message = refusal_of("Herring", tmp_path)
    for word in ("Herring_TRAIN", "Herring_TEST", ".tsv, .txt, .ts or .arff", str(tmp_path), "RNTK_DATA", "--data"):
        assert word in message
    assert "https://www.timeseriesclassification.com" in message
    assert "aeon, which comes with a few sets, is not installed" in message
    assert "did you mean" not in message
    assert "did you mean GunPoint?" in refusal_of("Gunpiont", tmp_path)
    assert "did you mean Toy?" in refusal_of("Toyy", tmp_path)
    assert "no folder of data is named" in refusal_of("Toy")
    assert "it is no folder" in refusal_of("Toy", tmp_path / "nowhere")


def test_half_a_set(tmp_path):
    put(tmp_path).with_name("Toy_TEST.tsv").rename(tmp_path / "Toy_TEST.txt")
    assert f"there is {tmp_path / 'Toy_TRAIN.tsv'}, and no Toy_TEST.tsv beside it" in refusal_of("toy", tmp_path)


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_no_name(name):
    assert f"name={name!r} is not a name" in refusal_of(name)


def test_parts_that_do_not_fit(tmp_path):
    put(tmp_path, suffix=".ts")
    (tmp_path / "Toy_TEST.ts").write_text("@classLabel true 1 2\n@data\n1,2:3,4:1\n")
    assert "it has 2 channels, and Toy_TRAIN.ts 1" in refusal_of("Toy", tmp_path)
    (tmp_path / "Toy_TEST.ts").write_text("@classLabel true a b\n@data\n1,2:a\n")
    assert "has words for labels" in refusal_of("Toy", tmp_path)
    (tmp_path / "Toy_TEST.ts").write_text("@data\n1,2\n")
    assert "a data set needs labels" in refusal_of("Toy", tmp_path)


# ---- The archive's facts -----------------------------------------------------------------------------------


def _coffee(n: int, T: int, classes: int = 2) -> str:
    return "".join(f"{k % classes}\t" + "\t".join(["0.5"] * T) + "\n" for k in range(n))


@pytest.mark.parametrize(
    ("train", "test", "problems"),
    [
        ((28, 286), (28, 286), []),
        ((27, 286), (28, 286), ["training sequences: expected 28, found 27"]),
        ((28, 286), (29, 286), ["test sequences: expected 28, found 29"]),
        ((28, 287), (28, 286), ["steps in the longest sequence: expected 286, found 287"]),
        ((28, 286), (28, 285), ["steps in the shortest sequence: expected 286, found 285"]),
        ((28, 286, 3), (28, 286), ["classes: expected 2, found 3"]),
        (
            (1, 2, 1),
            (28, 2, 1),
            [
                "training sequences: expected 28, found 1",
                "steps in the shortest sequence: expected 286, found 2",
                "steps in the longest sequence: expected 286, found 2",
                "classes: expected 2, found 1",
            ],
        ),
    ],
)
def test_sizes_are_compared_with_the_archives(tmp_path, train, test, problems):
    (tmp_path / "Coffee_TRAIN.tsv").write_text(_coffee(*train))
    (tmp_path / "Coffee_TEST.tsv").write_text(_coffee(*test))
    if problems:
        with pytest.raises(DataFileError) as caught:
            load("Coffee", tmp_path)
        assert list(caught.value.problems) == problems
        assert "not Coffee as the archive has it" in str(caught.value)
        assert "check=False" in str(caught.value)
    else:
        assert load("Coffee", tmp_path).notes == ()
    assert load("Coffee", tmp_path, check=False).notes == ("sizes not compared with the archive's",)


def test_facts_cover_the_papers_and_agree_with_themselves():
    facts = archive_facts()
    assert set(rntk_table_2()) <= set(facts)
    assert len(facts) >= 56 + 11 + 4 + 3
    for name, fact in facts.items():
        assert 1 < fact.classes <= fact.train, name
        assert 1 <= fact.shortest <= fact.longest, name
        assert fact.test > 0 < fact.channels, name
        assert len(fact.source) > 20, name
    assert {name for name, fact in facts.items() if fact.channels > 1} == {
        "ArticularyWordRecognition",
        "AtrialFibrillation",
        "BasicMotions",
        "Epilepsy",
        "JapaneseVowels",
    }
    assert (facts["PLAID"].shortest, facts["PLAID"].longest) == (101, 1344)
    with pytest.raises(TypeError):
        facts["Mine"] = facts["PLAID"]


def test_notes_of_the_facts_come_with_the_set(tmp_path):
    put(tmp_path, name="UMD")
    notes = load("UMD", tmp_path, check=False).notes
    assert notes == ("not z-normalised as shipped", "sizes not compared with the archive's")


# ---- aeon --------------------------------------------------------------------------------------------------


@needs_aeon
@pytest.mark.parametrize("name", ["GunPoint", "BasicMotions", "PickupGestureWiimoteZ"])
def test_sets_inside_aeon_equal_the_archives_facts(name):
    assert available()[name] == "aeon"
    data = load(name.lower())  # which compares all sizes
    facts = archive_facts()[name]
    assert data.name == name
    assert data.source == "aeon"
    assert (len(data.train), len(data.test_labels)) == (facts.train, facts.test)
    assert data.train.n_channels == facts.channels


@needs_aeon
def test_gunpoint_as_aeon_reads_it():
    from aeon.datasets import load_gunpoint

    data = load("GunPoint")
    for split, batch, labels in (("train", data.train, data.train_labels), ("test", data.test, data.test_labels)):
        X, y = load_gunpoint(split=split)
        np.testing.assert_array_equal(batch.values, SequenceBatch.from_aeon(X).values)
        np.testing.assert_array_equal(labels, y.astype(int))


@needs_aeon
def test_the_users_folder_goes_before_aeon(tmp_path):
    put(tmp_path, name="GunPoint")
    assert load("GunPoint", tmp_path, check=False).source == str(tmp_path / "GunPoint_TRAIN.tsv")
    assert available(tmp_path)["GunPoint"] == str(tmp_path / "GunPoint_TRAIN.tsv")
    assert load("ItalyPowerDemand", tmp_path).source == "aeon"


@needs_aeon
def test_aeons_other_material_is_no_data_set():
    assert "UnitTest" not in available()
    assert "aeon comes without it" in refusal_of("UnitTest")


# ---- Prices and the recording ------------------------------------------------------------------------------

HEADER = "Date,Open,High,Low,Close,Adj Close,Volume\n"
DAYS = "2014-01-02,558.25,559.5,554,557,278.5,3639100\n2014-01-03,558,559,553,553.5,276.75,3330000\n"


@pytest.fixture
def prices_file(tmp_path):
    def write(text: str, name: str = "GOOG.csv") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_prices_by_hand(prices_file):
    prices = load_prices(prices_file(HEADER + DAYS))
    assert prices.dates.tolist() == np.array(["2014-01-02", "2014-01-03"], dtype="datetime64[D]").tolist()
    assert prices.dates.dtype == "datetime64[D]"
    assert prices.close.tolist() == [557.0, 553.5] and prices.close.dtype == np.float64


def test_prices_in_other_orders_and_spellings(prices_file):
    path = prices_file(
        "\ufeff\n volume ,adj_close,CLOSE,Low,High,open,Dividends,date\r\n"
        '"10",2,3,4,5,6,,2014-01-02 00:00:00-05:00\r\n\r\n0,1,1,1,1,1,x,2014-02-01\r\n'
    )
    prices = load_prices(path)
    assert prices.close.tolist() == [3, 1]
    assert str(prices.dates[1]) == "2014-02-01"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER, "it has no line after its header"),
        ("", "it is empty"),
        ("Date,Open,High,Low\n" + DAYS, "expected a column Close, once each"),
        ("a;b\n1;2\n", "expected a column Date and a column Close, once each"),
        (HEADER.replace("Low", "Close") + DAYS, "expected a column Close, once each"),
        (HEADER + "02/01/2014,1,1,1,1,1,1\n", "line 2: '02/01/2014' is not a date"),
        (HEADER + "2014-02-30,1,1,1,1,1,1\n", "line 2: '2014-02-30' is not a date"),
        (HEADER + "20140102,1,1,1,1,1,1\n", "line 2: '20140102' is not a date"),
        (HEADER + DAYS + DAYS, "line 4: 2014-01-02 does not come after 2014-01-03"),
        (HEADER + DAYS + "2014-01-03,1,1,1,1,1,1\n", "line 4: 2014-01-03 does not come after 2014-01-03"),
        (HEADER + "2014-01-02,1,1,1,null,1,1\n", "line 2, Close: expected a number above 0, got 'null'"),
        (HEADER + "2014-01-02,1,1,1\n", "line 2, Close: expected a number above 0, got ''"),
        (HEADER + "2014-01-02,1,1,1,1e999,1,1\n", "line 2, Close: expected a number above 0, got '1e999'"),
        (HEADER + "2014-01-02,1,1,1,0,1,1\n", "line 2, Close: expected a number above 0, got '0'"),
        (HEADER + "x" * 200_000 + "\n", "line 2: field larger"),
    ],
)
def test_prices_refused(prices_file, text, expected):
    path = prices_file(text)
    with pytest.raises(DataFileError) as caught:
        load_prices(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


def test_prices_all_problems_in_one_message(prices_file):
    with pytest.raises(DataFileError) as caught:
        load_prices(prices_file(HEADER + "x,1,1,1,1,1,1\n" + DAYS + "2014-01-01,1,1,1,0,1,1\n"))
    assert len(caught.value.problems) == 3


def test_prices_in_a_folder(prices_file, tmp_path):
    assert find_prices(tmp_path) is None
    with pytest.raises(DataFileError, match="begins with GOOG"):
        load_prices(tmp_path)
    with pytest.raises(DataFileError, match="there is no such file"):
        load_prices(tmp_path / "GOOG.csv")
    prices_file("", "GOOG.txt")
    prices_file("", "AAPL.csv")
    (tmp_path / "GOOG.d.csv").mkdir()
    assert find_prices(tmp_path) is None
    path = prices_file(HEADER + DAYS, "googl_2014.CSV")
    assert find_prices(str(tmp_path)) == path
    assert len(load_prices(tmp_path).close) == 2


def test_find_recording(tmp_path, monkeypatch):
    assert find_recording(tmp_path) is None
    assert find_recording(tmp_path / "nowhere") is None
    assert find_recording() is None
    assert find_prices() is None
    (tmp_path / "s1_data.mat").write_bytes(b"")
    assert find_recording(tmp_path) == tmp_path / "s1_data.mat"
    monkeypatch.setenv("RNTK_DATA", str(tmp_path))
    assert find_recording() == tmp_path / "s1_data.mat"


# ---- The package -------------------------------------------------------------------------------------------


def test_needs_nothing_heavy(tmp_path):
    put(tmp_path)
    code = (
        f"import sys; from rntk.papers.data import available, load; load('Toy', {str(tmp_path)!r}); available();"
        "assert not {'aeon', 'jax', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_promised_names_exist():
    assert all(hasattr(datasets, name) for name in datasets.__all__)
