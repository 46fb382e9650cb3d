"""The UCR format: one univariate sequence per line, the label first, separated by tabs.

Sets of unequal length are padded with NaN at the end of their lines, and that padding is a length. Lines may as well
be of unequal length themselves. The archive's older ``.txt`` files are separated by runs of spaces, which is read
where a file has no tab at all.
"""

from __future__ import annotations

from .text import DataFile, numbered_lines

_ONE_PER_LINE = (
    "write one sequence per line, its label first, separated by tabs; "
    "pass label='none' if there are no labels, format='csv' if commas separate"
)


def parse_ucr(file: DataFile, text: str) -> None:
    """Add the sequences and labels of a UCR file."""
    if file.label not in ("auto", "first", "last", "none"):
        advice = "pass 'first' (which 'auto' means here), 'last' or 'none'"
        raise file.refusal(f"label={file.label!r} names a column, and UCR files have no column names", advice)
    first = next(numbered_lines(text))[1]
    separator = "\t" if "\t" in text else None
    if separator is None and first.count(",") > len(first.split()) - 1:
        raise file.refusal("its first line is separated by commas, expected tabs", "pass format='csv'")
    file.begin_labels(file.label != "none")
    before = 1 if file.label in ("auto", "first") else 0  # fields before the values
    for number, line in numbered_lines(text):
        fields = file.with_points(number, line.split(separator))
        if file.labels is not None:
            file.add_label(number, fields.pop(-1 if file.label == "last" else 0))
            if not fields:
                file.complain(number, "no values", "one field, and no values", _ONE_PER_LINE)
                continue
        file.add_sequence(number, [fields], lambda step, _: f"field {step + before + 1}")
