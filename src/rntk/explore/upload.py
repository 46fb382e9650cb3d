"""A file handed in on the page: what the browser sends, read by the same door as any other file."""

from __future__ import annotations

import base64
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from ..io import read
from .data import Study
from .state import Trouble


def read_upload(name: str, content: str) -> Study | Trouble:
    """The study of a file called `name`, whose `content` is in base64; or what is wrong with it.

    Labels stand where the format says. Only the suffix of the name is used on this machine.
    """
    with TemporaryDirectory(prefix="rntk-explore-") as folder:
        path = Path(folder, "data" + PurePath(name).suffix)
        try:
            path.write_bytes(base64.b64decode(content))
            found = read(path)
            return Study.of(name, found.X, found.y)
        except (ValueError, OSError) as error:
            return Trouble(str(error).replace(str(path), name))
