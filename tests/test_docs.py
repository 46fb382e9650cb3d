"""The documentation says what is so: its code runs and prints what it shows, its links lead somewhere, its tables of
options and errata agree with the library, and the site builds without a warning and opens without a network.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src"
PAGES = sorted(DOCS.rglob("*.md"))
#: Libraries that docstring examples may need, and that a user may not have.
OPTIONAL = {"aeon", "bokeh", "dask", "jax", "jinja2", "matplotlib", "optax", "sktime", "tornado", "zarr"}


def tool(name: str):
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


tutorials, gallery = tool("tutorials"), tool("docs_gallery")


def importable(name: str):
    """A module, or None where it needs a library that isn't there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name not in OPTIONAL:
            raise
        return None


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture
def pictures(monkeypatch, tmp_path):
    """Figures go nowhere, and files that examples write into a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# ---- Code on pages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", DOCS / "index.md", DOCS / "research.md", *sorted(tutorials.TUTORIALS.glob("*.md"))],
    ids=name_of,
)
def test_code_on_pages_runs_and_gives_what_they_show(page, pictures):
    pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "rntk[plot]"')
    if "import finite" in page.read_text(encoding="utf-8"):
        pytest.importorskip("jax", reason='needs JAX: pip install "rntk[finite]"')
    results = list(tutorials.run(page))
    assert results
    for block, printed, drawn in results:
        where = f"{name_of(page)}, line {block.line}"
        if page.parent == tutorials.TUTORIALS:
            assert tutorials.agree(block.output or "", printed), f"{where} shows\n{block.output}and prints\n{printed}"
            assert drawn == (block.picture is not None), where
            assert block.picture is None or (page.parent / block.picture).is_file(), where


def test_outputs_agree_up_to_rounding_and_no_further():
    assert tutorials.agree("R² 0.94 of [1.  2.5]\n", "R² 0.95 of [1.0 2.52]\n")
    for other in ("R² 0.90 of [1.  2.5]\n", "R² 0.94 of [1.  2.5 3]\n", "loss 0.94 of [1.  2.5]\n", ""):
        assert not tutorials.agree("R² 0.94 of [1.  2.5]\n", other)


def test_blocks_are_found_with_what_belongs_to_them():
    page = "text\n\n```python\na = 1\n```\n\nwords\n\n```python\nprint(a)\n```\n\n```text\n1\n```\n\n![a](p/x.svg)\n"
    first, second = tutorials.read_blocks(page)
    assert (first.code, first.line, first.output, first.picture) == ("a = 1\n", 3, None, None)
    assert (second.code, second.line, second.output, second.picture) == ("print(a)\n", 9, "1\n", "p/x.svg")


# ---- Examples in docstrings ------------------------------------------------------------------------------------------

WITH_EXAMPLES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((SOURCE / "rntk").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


#: Networks are compiled and trained there for longer than a few seconds.
SLOW = {
    "rntk.papers.networks.classifier",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in WITH_EXAMPLES]
)
def test_examples_in_docstrings_run(name, pictures):
    module = importable(name)
    if module is None:
        pytest.skip("needs a library that is not installed")
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


# ---- Pages, links, names ---------------------------------------------------------------------------------------------


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(page: Path) -> set[str]:
    """What headings of a page are called in addresses: lower case, dashes for spaces, nothing but words."""
    titles = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.is_file(), f"{name_of(page)} links to {target}"
        if anchor and goal.suffix == ".md" and goal.parent.name != "api":  # those come from docstrings
            assert anchor in anchors(goal), f"{name_of(page)} links to {target}"


def test_the_site_lists_every_page():
    listed = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_the_reference_has_every_public_part():
    import rntk

    documented = {
        name for page in (DOCS / "api").glob("*.md") for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.M)
    }
    promised = {f"rntk.{part}" for part in rntk._PARTS} | set(rntk._HOME.values())
    assert promised <= documented
    # A page is named by the room that it is about.
    rooms = {path.stem for path in (SOURCE / "rntk").iterdir()}
    assert {page.stem for page in (DOCS / "api").glob("*.md")} - rooms == {"command-line"}
    for name in documented:
        path = SOURCE / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), name


def test_the_command_line_is_described_as_it_is():
    import typer

    from rntk.cli import app

    text = (DOCS / "api" / "command-line.md").read_text(encoding="utf-8")
    described = {}
    for section in re.split(r"^## rntk ", text, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        rows = re.findall(r"^\| (`.+?) \| .+? \| ?(.*?) ?\|$", body, re.MULTILINE)
        described[name] = {
            tuple(each.split(" ")[0] for each in re.findall(r"`([^`]+)`", names)): default.strip("`")
            for names, default in rows
        }
    actual = {}
    for name, command in typer.main.get_command(app).commands.items():
        actual[name] = {}
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                actual[name][(parameter.metavar.strip("[]."),)] = ""
                continue
            default = parameter.default
            if parameter.secondary_opts:
                default = (parameter.opts if default else parameter.secondary_opts)[0]
            said = "" if default is None or default is False else str(default)
            actual[name][(*parameter.opts, *parameter.secondary_opts)] = said
    assert described == actual
    for name, command in typer.main.get_command(app).commands.items():
        assert command.help.rstrip(".").replace("`", "") in " ".join(text.replace("`", "").split()), name


# ---- Errata ----------------------------------------------------------------------------------------------------------


def table_rows(text: str) -> list[list[str]]:
    rows = [re.split(r" \| ", line.strip("| \n")) for line in text.splitlines() if line.startswith("| [")]
    assert rows and all(len(row) == 4 for row in rows)
    return rows


def test_errata_name_tests_that_exist():
    for place, _, _, tests in table_rows((DOCS / "errata.md").read_text(encoding="utf-8")):
        named = re.findall(r"`tests/([\w/]+\.py)::(\w+)`", tests)
        assert named, place
        for file, function in named:
            tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
            assert function in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, (file, function)


def test_errata_of_the_theory_are_all_there():
    theory = (DOCS / "theory.md").read_text(encoding="utf-8").partition("## 10. Errata")[2]
    places = [row[0] for row in table_rows((DOCS / "errata.md").read_text(encoding="utf-8"))]
    for place in (row[0] for row in table_rows(theory)):
        words = re.findall(r"[^\s,]+", place)
        assert any(all(word in other for word in words) for other in places), place


# ---- Gallery, formulas, docstrings -----------------------------------------------------------------------------------

RECORD = {
    "study": "figure-9",
    "title": "A *title* with <signs>",
    "source": "RNTK paper, Figure 9",
    "command": "rntk reproduce figure-9 --full",
    "claims": [
        {"sentence": "1 < 2 | 3", "paper": "0.5", "ours": "0.51", "verdict": "reproduced", "reason": ""},
        {"sentence": "grows", "paper": "", "ours": "falls", "verdict": "differs", "reason": "a misprint"},
    ],
}
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><circle cx="20" cy="15" r="9"/></svg>'


def write_study(folder: Path) -> None:
    study = folder / "figure-9"
    study.mkdir(parents=True)
    (study / "record.json").write_text(json.dumps(RECORD), encoding="utf-8")
    (study / "curve.svg").write_text(PICTURE, encoding="utf-8")


def test_gallery_without_results_says_how_to_make_them(tmp_path):
    found = gallery.read_gallery(tmp_path / "missing")
    assert "rntk reproduce all --full" in found.text
    assert found.pictures == {} and found.problems == []


def test_gallery_shows_title_source_picture_and_claims(tmp_path):
    write_study(tmp_path)
    found = gallery.read_gallery(tmp_path)
    assert found.problems == []
    assert found.pictures == {"gallery/figure-9/curve.svg": tmp_path / "figure-9" / "curve.svg"}
    assert found.text.startswith("## A \\*title\\* with \\<signs\\>")
    for words in (
        "RNTK paper, Figure 9",
        'src="gallery/figure-9/curve.svg"',
        "<td>1 &lt; 2 | 3</td><td>0.5</td><td>0.51</td>",
        '<strong class="verdict-differs">differs</strong><br>a misprint',
        "`rntk reproduce figure-9 --full`",
    ):
        assert words in found.text


def test_gallery_reports_records_that_cannot_be_shown(tmp_path):
    write_study(tmp_path)
    for name, text in (("cut", '{"title": "a'), ("other", '{"title": "a", "source": "b"}'), ("list", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "record.json").write_text(text, encoding="utf-8")
    found = gallery.read_gallery(tmp_path)
    assert len(found.problems) == 3 and all("can't be shown" in problem for problem in found.problems)
    assert list(found.pictures) == ["gallery/figure-9/curve.svg"]


def test_results_that_are_here_can_be_shown():
    assert gallery.read_gallery(gallery.RESULTS).problems == []


def test_formulas_become_mathml(caplog):
    pytest.importorskip("latex2mathml", reason="needs latex2mathml, of the extra docs")
    formulas = tool("docs_formulas")
    page = '<p>a <span class="arithmatex">\\(\\mathcal K \\lt \\lvert x\\rvert\\)</span></p>'
    shown = formulas.render_formulas(page + '<div class="arithmatex">\\[\nx \\tag{12}\n\\]</div>')
    assert "𝒦" in shown and "arithmatex" not in shown and "\\" not in shown
    assert re.findall(r'form="(\w+)">\|', shown) == ["prefix", "postfix"]
    assert '<div class="equation" id="equation-12">' in shown and "(12)</span>" in shown
    # Every line of an aligned formula is a row; left as it is, its marks would be letters.
    assert formulas.render(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", block=True).count("<mtr>") == 2
    for text in (page.read_text(encoding="utf-8") for page in PAGES):
        for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", without_code(text), re.DOTALL):
            formulas.render(block or inline, block=bool(block))
    assert caplog.records == []
    formulas.render(r"\nonsense x", block=False)
    assert "wasn't understood" in caplog.text


# ---- Docstrings ------------------------------------------------------------------------------------------------------

#: "name : type" or "name", several names at most; what it is stands below.
HEADING = re.compile(r"\*{0,2}[\w.]+(, \*{0,2}[\w.]+)*( : \S.*)?")


def sections(docstring: str) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines of the sections that list something."""
    parts = re.split(r"^([A-Z][a-z]+)\n-{3,}\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Parameters", "Attributes", "Raises"):
            yield title, body.split("\n")


def documented_objects() -> Iterator[tuple[str, str]]:
    for path in sorted((SOURCE / "rntk").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield f"{path.relative_to(SOURCE)}:{node.name}", ast.get_docstring(node) or ""


def test_docstrings_are_numpydoc():
    """A name, perhaps its type, and what it is below: then parsers need no translator."""
    wrong = []
    for place, docstring in documented_objects():
        for _, lines in sections(docstring):
            for line in lines:
                if not line:
                    break  # what follows is prose
                if not line.startswith(" ") and (HEADING.fullmatch(line) is None or line.endswith((".", ";"))):
                    wrong.append(f"{place}: {line}")
    assert not wrong, "\n".join(wrong)


#: "name : type, default=value", as most write it, or "default value"
DEFAULT = re.compile(r"^((?:\w+, )*\w+) : .*?\bdefault[= ](.+)$", re.MULTILINE)


def test_defaults_are_what_docstrings_say():
    wrong, count = [], 0
    for module in filter(None, map(importable, WITH_EXAMPLES)):
        for name, part in vars(module).items():
            if name.startswith("_") or getattr(part, "__module__", None) != module.__name__ or not callable(part):
                continue
            for names, stated in DEFAULT.findall(inspect.getdoc(part) or ""):
                for each in names.split(", "):
                    default, count = inspect.signature(part).parameters[each].default, count + 1
                    if ast.literal_eval(stated) != default:
                        wrong.append(f"{module.__name__}.{name}: {each} is {default!r}, not {stated}")
    assert not wrong, "\n".join(wrong)
    assert count > 40  # without extras there are fewer


# ---- The site --------------------------------------------------------------------------------------------------------

#: Builds the site as `mkdocs build --strict` does, with a gallery that has something to show.
BUILD = """
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from mkdocs.commands.build import build
from mkdocs.config import load_config
config = load_config(sys.argv[1], site_dir=sys.argv[2], strict=True)
config.hooks["tools/docs_gallery.py"].RESULTS = Path(sys.argv[3])
config.plugins.on_startup(command="build", dirty=False)
build(config)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f'{name} is not installed: pip install "rntk[docs]"')
    folder = tmp_path_factory.mktemp("site")
    write_study(folder / "results")
    command = [sys.executable, "-c", BUILD, str(ROOT / "mkdocs.yml"), str(folder / "site"), str(folder / "results")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_the_site_builds_and_has_every_page(site):
    for page in PAGES:
        html = (site / page.relative_to(DOCS).with_suffix(".html")).read_text(encoding="utf-8")
        assert "arithmatex" not in html
    assert "A *title* with" in (site / "gallery.html").read_text(encoding="utf-8")
    assert (site / "theory.html").read_text(encoding="utf-8").count("<math") > 500


def test_the_reference_has_every_promised_class_and_function(site):
    for page in (DOCS / "api").glob("*.md"):
        html = (site / "api" / page.with_suffix(".html").name).read_text(encoding="utf-8")
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            module = importable(name)
            for promised in getattr(module, "__all__", []):
                if isinstance(getattr(module, promised), type | types.FunctionType):
                    assert f'id="{name}.{promised}"' in html, f"{name}.{promised} is not on {page.name}"


def test_the_site_names_no_other_server(site):
    """Whatever a page loads by itself comes with it."""
    for page in site.rglob("*.html"):
        for address in re.findall(r'(?:src|<link[^>]+href)="([^"]+)"', page.read_text(encoding="utf-8")):
            assert not re.match(r"https?:|//", address), (page.name, address)


@pytest.mark.browser
def test_the_site_opens_from_a_folder_without_errors(site):
    """In a real browser: no error, no request, pictures and formulas of some size, and a search that finds."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is missing; make test-browser installs it")
    from selenium.webdriver.support.wait import WebDriverWait

    browser, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver_path is None:
        pytest.skip("chromium or chromedriver is missing; make test-browser installs them")
    options = selenium.ChromeOptions()
    options.binary_location = browser
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = selenium.Chrome(options=options, service=selenium.ChromeService(driver_path))
    try:
        # Two of the reference stand for all of it.
        reference = [site / "api" / "kernels.html", site / "api" / "command-line.html"]
        for page in [*site.glob("[!4]*.html"), *site.glob("tutorials/*.html"), *reference]:
            driver.get(page.as_uri())
            assert driver.get_log("browser") == [], page.name
            empty = "return [...document.querySelectorAll('main img, main math')].filter(each => {"
            empty += "const box = each.getBoundingClientRect();"
            empty += "return !(box.width && box.height) || each.naturalWidth === 0 }).length"
            assert driver.execute_script(empty) == 0, page.name
        driver.get((site / "index.html").as_uri())
        driver.execute_script("document.querySelector('[name=query]').focus()")
        driver.switch_to.active_element.send_keys("RNTKGaussianProcessRegressor")
        found = "return document.querySelectorAll('.md-search-result__link').length"
        WebDriverWait(driver, 30).until(lambda each: each.execute_script(found))
        assert driver.get_log("browser") == []
    finally:
        driver.quit()
