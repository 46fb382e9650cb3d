"""`load`, which gives a data set by its name, and `available`, which says what there is."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...io import DataFileError, read
from ...io.text import refusal
from ...sequences import SequenceBatch
from ...sequences.gaps import Missing
from .bundled import bundled_sets
from .facts import ArchiveFacts, archive_facts
from .folder import SUFFIXES, VARIABLE, DataPath, Listing, SplitFiles, choose_folder, list_sets

Labels = NDArray[Any]

_ARCHIVES = "https://www.timeseriesclassification.com or https://www.cs.ucr.edu/~eamonn/time_series_data_2018"
_SAY_FOLDER = f"name its folder by `folder`, by the environment variable {VARIABLE}, or by --data on the command line"


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """A classification problem as its archive splits it.

    Attributes
    ----------
    name : str
        As the archive spells it.
    train, test : SequenceBatch
        The sequences, float64, in the order of the files.
    train_labels, test_labels : ndarray of shape (n,)
        As in `rntk.io.LabelledSequences`: int64 where all are whole numbers, str otherwise.
    source : str
        The training file, or "aeon" if the set came with that package.
    notes : tuple of str
        What to say beside a result: what the archive's facts warn of, and whether sizes went unchecked.
    """

    name: str
    train: SequenceBatch
    train_labels: Labels
    test: SequenceBatch
    test_labels: Labels
    source: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        notes = f", notes={self.notes!r}" if self.notes else ""
        return f"DataSet({self.name!r}, train={self.train!r}, test={self.test!r}, source={self.source!r}{notes})"


def available(folder: DataPath | None = None) -> dict[str, str]:
    """Return the names that `load` takes, in order, each with where it is: its training file, or "aeon".

    Parameters
    ----------
    folder : path, optional
        The data folder; the environment variable ``RNTK_DATA`` if left out.

    Examples
    --------
    >>> from rntk.papers.data import available
    >>> sets = available()  # without a folder, what is inside the aeon package
    """
    root = choose_folder(folder)
    places = {pair.name: "aeon" for pair in bundled_sets().values()}
    for pair in list_sets(root).pairs.values() if root is not None else ():
        places[_spell(pair.name)] = str(pair.train)
    return dict(sorted(places.items(), key=lambda item: item[0].casefold()))


def load(
    name: str,
    folder: DataPath | None = None,
    *,
    missing: Missing = "interpolate",
    check: bool = True,
) -> DataSet:
    """Return the data set of a name.

    Parameters
    ----------
    name : str
        As the archive spells it, in any case: "FaceAll" or "Faceall".
    folder : path, optional
        Where the user's data are; the environment variable ``RNTK_DATA`` if left out. ``NAME_TRAIN`` and
        ``NAME_TEST``, both ``.tsv``, ``.txt``, ``.ts`` or ``.arff``, may be in the folder itself, in ``NAME/``, in
        any other subfolder, or in a folder ``NAME/`` of such a subfolder, ``ucr/NAME/`` for example. What is not
        there is taken from the sets inside the aeon package, if that is installed.
    missing : "interpolate" or "error"
        What to do about values missing inside a series, as in `rntk.io.read`.
    check : bool
        Whether to refuse a set whose sizes are not those of `archive_facts`. Sets without facts are never refused.

    Returns
    -------
    DataSet

    Raises
    ------
    DataFileError
        If there is no such set, a file of it cannot be read, or its sizes are not the archive's.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rntk.papers.data import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("TRAIN", "TEST"):
    ...         _ = Path(folder, f"Toy_{part}.tsv").write_text("1\\t0.5\\t0.25\\n2\\t1.5\\t2.5\\n")
    ...     toy = load("toy", folder)
    >>> toy.name, toy.train, toy.train_labels
    ('Toy', SequenceBatch(2 sequences, length 2, 1 channel, float64), array([1, 2]))
    """
    pair, source = _find(name, folder)
    return _read(pair, source, missing, check)


def find_files(name: str, folder: DataPath | None = None) -> tuple[Path, Path]:
    """Return the training and the test file that `load` would read; raises as it does where there are none."""
    pair, _ = _find(name, folder)
    return pair.train, pair.test


def _find(name: str, folder: DataPath | None) -> tuple[SplitFiles, str]:
    """Return the files of a set, and where they came from."""
    if not isinstance(name, str) or not name.strip():
        raise refusal("data set", f"name={name!r} is not a name", "pass the archive's name, 'GunPoint' for example")
    name = _spell(name.strip())
    key = name.casefold()
    root = choose_folder(folder)
    listing = Listing() if root is None else list_sets(root)
    inside = {} if key in listing.pairs else bundled_sets()
    if key in listing.pairs:
        return listing.pairs[key], str(listing.pairs[key].train)
    if key in inside:
        return inside[key], "aeon"
    raise _not_found(name, root, listing, bool(inside))


def _spell(name: str) -> str:
    """Return the archive's spelling of a name, or the name itself if the archive's is not known."""
    key = name.casefold()
    return next((known for known in archive_facts() if known.casefold() == key), name)


def _read(pair: SplitFiles, source: str, missing: Missing, check: bool) -> DataSet:
    name = _spell(pair.name)
    train, test = read(pair.train, missing=missing), read(pair.test, missing=missing)
    for part in (train, test):
        if part.y is None:
            raise refusal(part.path, "a data set needs labels, and this file has none", "announce them in its header")
    assert train.y is not None and test.y is not None
    if train.X.n_channels != test.X.n_channels:
        problem = f"it has {test.X.n_channels} channels, and {pair.train.name} {train.X.n_channels}"
        raise refusal(pair.test, problem, "take both files from one archive")
    if (train.y.dtype.kind == "U") != (test.y.dtype.kind == "U"):
        problem = f"only one of this file and {pair.train.name} has words for labels"
        raise refusal(pair.test, problem, "take both files from one archive")
    facts = archive_facts().get(name)
    notes = () if facts is None else facts.notes
    if facts is None or not check:
        notes = (*notes, "sizes not compared with the archive's" if facts else "no sizes known to compare with")
    else:
        _compare(pair, name, facts, train.X, train.y, test.X, test.y)
    return DataSet(name, train.X, train.y, test.X, test.y, source, notes)


def _compare(
    pair: SplitFiles, name: str, facts: ArchiveFacts, X: SequenceBatch, y: Labels, X_test: SequenceBatch, y_test: Labels
) -> None:
    """Refuse a set whose sizes are not those that the archive states."""
    lengths = np.concatenate([X.lengths, X_test.lengths])
    numbers = (
        ("training sequences", facts.train, len(X)),
        ("test sequences", facts.test, len(X_test)),
        ("steps in the shortest sequence", facts.shortest, int(lengths.min())),
        ("steps in the longest sequence", facts.longest, int(lengths.max())),
        ("channels", facts.channels, X.n_channels),
        ("classes", facts.classes, len(np.unique(np.concatenate([y, y_test])))),
    )
    problems = [f"{what}: expected {expected}, found {found}" for what, expected, found in numbers if expected != found]
    if problems:
        raise DataFileError(
            f"{pair.train} and {pair.test.name} are not {name} as the archive has it ({'; '.join(problems)}); "
            "take the archive's own files, or pass check=False to use these",
            problems,
        )


def _not_found(name: str, root: Path | None, listing: Listing, has_aeon: bool) -> DataFileError:
    """Return the error for a set that is nowhere: what was looked for, where, and how to get it."""
    subject, key = f"data set {name!r}", name.casefold()
    if key in listing.halves:
        train = listing.halves[key]
        problem = f"there is {train}, and no {train.name[: len(name)]}_TEST{train.suffix} beside it"
        return refusal(subject, problem, "put both files of the archive into one folder")
    wanted = f"{name}_TRAIN and {name}_TEST ({', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]})"
    folder = f"{wanted} are not in {root}, nor in its subfolders" if root else "no folder of data is named"
    aeon = "aeon comes without it" if has_aeon else "aeon, which comes with a few sets, is not installed"
    spellings = {known.casefold(): known for known in archive_facts()}
    spellings |= {known: pair.name for known, pair in listing.pairs.items()}
    close = [spellings[other] for other in difflib.get_close_matches(key, spellings, n=1) if other != key]
    meant = f"did you mean {close[0]}? If not, " if close else ""
    return refusal(subject, f"{folder}, and {aeon}", f"{meant}get it from {_ARCHIVES}, unpack it, and {_SAY_FOLDER}")
