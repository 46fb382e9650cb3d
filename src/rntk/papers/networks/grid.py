"""The hyperparameters that appendix A of the RNTK paper searches."""

from __future__ import annotations

from typing import Any


def paper_grid() -> dict[str, list[Any]]:
    """The 32 settings of appendix A, for `GridSearchCV(..., cv=5)`: depth L, width n and learning rate η.

    A new dictionary at every call, to cut or extend.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from rntk.papers.networks import GRUClassifier, paper_grid
    >>> search = GridSearchCV(GRUClassifier(random_state=0), paper_grid(), cv=5)  # .fit(X, y): 161 trainings
    >>> sorted(paper_grid())
    ['depth', 'learning_rate', 'width']
    """
    return {"depth": [1, 2], "width": [50, 100, 200, 500], "learning_rate": [1e-2, 1e-3, 1e-4, 1e-5]}
