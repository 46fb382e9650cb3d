"""`rntk score`: how good a saved model is on labelled sequences."""

from __future__ import annotations

from typing import Any

from .options import (
    DataArgument,
    DecimalOption,
    FormatOption,
    HeaderOption,
    JsonOption,
    LabelOption,
    MissingOption,
    ModelArgument,
    load_model,
    predict,
    read_data,
)
from .output import counted, make_console, make_table, print_json
from .refusal import refuse


def score(
    model: ModelArgument,
    data: DataArgument,
    label: LabelOption = "auto",
    format: FormatOption = None,
    missing: MissingOption = "error",
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare predictions with labels: accuracy and a table of classes, or R² and RMSE."""
    learner = load_model(model)
    content = read_data(data, label, format, missing, header, decimal)
    if content.y is None:
        refuse(f"{data} has no labels to compare with; --label says where they stand")
    classify = hasattr(learner, "classes_")
    if classify:
        classes, y = _common(learner.classes_, content.y)
        if not set(classes) & set(y):
            refuse(f"no label of {data} is a class of {model}: {_list(set(y))} and {_list(classes)}")
    elif content.y.dtype.kind == "U":
        refuse(f"{model} predicts numbers, and the labels of {data} are words, such as {str(content.y[0])!r}")
    predictions = predict(learner, model, content)
    if predictions.ndim > 1 and predictions.shape[1] > 1:
        refuse(f"{model} predicts {predictions.shape[1]} numbers per sequence, and {data} has one label each")
    report = {"model": str(model), "data": str(data), "n_sequences": len(content.X)}
    if classify:
        found, _ = _common(predictions, content.y)
        report |= {"task": "classify", **_count(classes, y, found)}
    else:
        report |= {"task": "regress", **_measure(content.y, predictions.ravel())}
    if as_json:
        print_json(report)
    else:
        _show(report)


def _common(first: Any, second: Any) -> tuple[list[Any], list[Any]]:
    """Both lists of labels in one type: numbers, or words if either is words."""
    import numpy as np

    left, right = first.tolist(), second.tolist()
    if (np.asarray(first).dtype.kind in "OU") != (np.asarray(second).dtype.kind in "OU"):
        left, right = list(map(str, left)), list(map(str, right))
    return left, right


def _list(labels: Any) -> str:
    shown = sorted(labels)
    return ", ".join(map(str, shown[:5])) + (", …" if len(shown) > 5 else "")


def _count(classes: list[Any], y: list[Any], found: list[Any]) -> dict[str, Any]:
    """Accuracy, and for every class how many of it were found and how many found are of it."""
    from sklearn.metrics import confusion_matrix

    labels = classes + sorted(set(y) - set(classes))
    table = confusion_matrix(y, found, labels=labels)
    counts = zip(labels, table.diagonal().tolist(), table.sum(1).tolist(), table.sum(0).tolist(), strict=True)
    rows = [
        {
            "label": each,
            "known": each in classes,
            "n_sequences": present,
            "n_predicted": claimed,
            "recall": hits / present if present else None,
            "precision": hits / claimed if claimed else None,
        }
        for each, hits, present, claimed in counts
    ]
    right = int(table.trace())
    return {"accuracy": right / len(y), "n_correct": right, "classes": rows}


def _measure(y: Any, predictions: Any) -> dict[str, Any]:
    """R² and errors; R² compares with the mean of the labels, so it needs labels that differ."""
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    return {
        "r2": r2_score(y, predictions) if len(set(y.tolist())) > 1 else None,
        "rmse": root_mean_squared_error(y, predictions),
        "mae": mean_absolute_error(y, predictions),
    }


def _show(report: dict[str, Any]) -> None:
    console = make_console()
    count = counted(report["n_sequences"], "sequence")
    if report["task"] == "regress":
        r2 = "none, because all labels are equal" if report["r2"] is None else f"{report['r2']:.4f}"
        console.print(f"R²: {r2}\nRMSE: {report['rmse']:.4g}\nMAE: {report['mae']:.4g}\n({count})")
        return
    console.print(f"Accuracy: {report['accuracy']:.1%} ({report['n_correct']} of {count})")
    table = make_table("class", "sequences", "predicted", "recall", "precision")
    for row in report["classes"]:
        shares = ["–" if row[name] is None else f"{row[name]:.1%}" for name in ("recall", "precision")]
        name = str(row["label"]) if row["known"] else f"{row['label']} (not a class of the model)"
        table.add_row(name, str(row["n_sequences"]), str(row["n_predicted"]), *shares)
    console.print(table)
