"""The house: which rooms there are, who imports whom, how many lines of code each has.

`python tools/house.py` prints the tree with levels and lines; `--picture` prints the data path for CONTRIBUTING.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "rntk"

#: A room imports from rooms of lower levels only; rooms of one level do not know each other.
LEVELS = {
    "errors": 0,
    "runtime": 1,
    "plot": 1,
    "sequences": 1,
    "activations": 2,
    "network": 3,
    "preprocessing": 2,
    "engine": 4,
    "kernels": 5,
    "gram": 6,
    "programs": 6,
    "finite": 7,
    "learners": 7,
    "theory": 7,
    "linear": 8,
    "io": 9,
    "adapters": 9,
    "explore": 10,
    "papers": 10,
    "cli": 11,
}


def rooms() -> list[str]:
    """Entries at the top of the package, beside its front door."""
    found = [path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    return sorted(set(found) - {"__init__"}, key=lambda room: (LEVELS.get(room, 99), room))


def files_of(room: str) -> list[Path]:
    """The modules of a room."""
    file = SOURCE / f"{room}.py"
    return [file] if file.exists() else sorted((SOURCE / room).rglob("*.py"))


def imports_of(path: Path) -> set[str]:
    """Rooms of ours that a module imports, wherever in it the import stands."""
    base = ("rntk", *path.relative_to(SOURCE).with_suffix("").parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            # Levels count from the package that the module lies in, itself one if it is an `__init__`.
            module = ".".join((*base[: len(base) - node.level], node.module or "")) if node.level else node.module or ""
            names = [f"{module.rstrip('.')}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
            names = [part.value for part in node.args if isinstance(part, ast.Constant)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "rntk" and len(parts) > 1 and parts[1] in LEVELS:
                found.add(parts[1])
    return found


def upward_imports() -> list[str]:
    """Imports that run against the levels, in words."""
    found = []
    for room in rooms():
        for path in files_of(room):
            for other in imports_of(path) - {room}:
                if LEVELS[other] >= LEVELS.get(room, 99):
                    found.append(f"{path.relative_to(SOURCE)} imports {other}")
    return found


def code_lines(path: Path) -> int:
    """Lines of a module without docstrings, comments, blank lines and imports."""
    text = path.read_text()
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        docstring = isinstance(body, list) and body and isinstance(body[0], ast.Expr) and body[0].value
        if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
            left_out.update(range(body[0].lineno, body[0].end_lineno + 1))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, node.end_lineno + 1))
    kept = set()
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            kept.update(range(token.start[0], token.end[0] + 1))
    return len(kept - left_out)


def table() -> str:
    """Rooms with their level, files, lines of code, all lines and what they import."""
    lines = [f"{'level':>5} {'room':14} {'files':>5} {'code':>6} {'lines':>6}  imports"]
    totals = {"outside papers": 0, "papers": 0}
    for room in rooms():
        paths = files_of(room)
        code = sum(map(code_lines, paths))
        totals["papers" if room == "papers" else "outside papers"] += code
        known = sorted(set().union(*map(imports_of, paths)) - {room}, key=lambda name: (LEVELS[name], name))
        size = sum(len(path.read_text().splitlines()) for path in paths)
        lines.append(
            f"{LEVELS.get(room, 99):5} {room:14} {len(paths):5} {code:6} {size:6}  {', '.join(known)}".rstrip()
        )
    totals["outside papers"] += code_lines(SOURCE / "__init__.py")
    lines += [f"{count} lines of code {where}" for where, count in totals.items()]
    return "\n".join(lines)


def summary(room: str) -> str:
    """The first words of a room's docstring."""
    text = ast.get_docstring(ast.parse(files_of(room)[0].read_text())) or ""
    return text.partition("\n")[0].rstrip(".")


def picture() -> str:
    """The house from the ground up: rooms by level, what each is, and the highest rooms that it builds on."""
    known = {room: set().union(*map(imports_of, files_of(room))) - {room} for room in rooms()}
    lines, level = [], -1
    for room in rooms():
        # Of the rooms it imports, those that no other one of them imports.
        direct = [name for name in known[room] if not any(name in known[other] for other in known[room])]
        if LEVELS[room] != level:
            level = LEVELS[room]
            lines += ["", f"level {level}"] if lines else [f"level {level}"]
        arrow = f" <- {', '.join(sorted(direct))}" if direct else ""
        lines.append(f"  {room:14}{summary(room)}{arrow}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(picture() if "--picture" in sys.argv else table())
    for line in upward_imports():
        print(line)
    sys.exit(bool(upward_imports()))
