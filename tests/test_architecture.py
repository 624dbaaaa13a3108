"""ARCHITECTURE.md is true: its paths exist, its loop is the loop, its arrows are imports."""

from __future__ import annotations

import ast
import re
import textwrap
from functools import partial
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import grimp

from driftline import registry

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "driftline"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_answers_to_where_is_exist() -> None:
    paths = re.findall(r"\| `([^`]+)` \|$", section("Where is …?"), flags=re.MULTILINE)
    assert len(paths) >= 30
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


def test_every_package_has_a_row() -> None:
    rows = section("Packages")
    packages = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert len(packages) > 20
    assert [name for name in packages if f"`{name}/`" not in rows] == []


def test_a_method_has_the_path_that_its_name_suggests() -> None:
    from driftline._registry_index import INDEX

    stems = {name: entry[0].rsplit(".", 1)[1] for name, entry in INDEX["method"].items()}
    families = {entry[0].split(".")[2] for entry in INDEX["method"].values()}
    own = [name for name, stem in stems.items() if stem == name.replace("-", "_")]
    assert {"tent", "eata", "ewc", "er", "ncm", "lwf", "a-gem"} <= set(own)
    assert {"test_time", "supervised", "replay", "online", "prototypes", "sequence", "retraining"} <= families


def test_a_method_has_at_most_two_classes_of_this_package_above_it() -> None:
    from driftline._registry_index import INDEX

    deep = {}
    for name in INDEX["method"]:
        registered = registry.get("method", name)
        method = registered.func if isinstance(registered, partial) else registered
        above = [parent.__name__ for parent in method.__mro__[1:] if parent.__module__.startswith("driftline.")]
        if len(above) > 2:
            deep[name] = above
    assert deep == {}


def test_explicit_any_stays_rare() -> None:
    """Interfaces with pandas, torch, Ray and altair need some; everything else has a type."""
    lines = 0
    for file in PACKAGE.rglob("*.py"):
        if file.name != "_registry_index.py":
            nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            lines += len({node.lineno for node in nodes if isinstance(node, ast.Name) and node.id == "Any"})
    assert lines < 300


def test_functions_and_files_are_short() -> None:
    """A function has at most 40 lines without its docstring, a file at most 320 with everything."""
    long = []
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and n_lines(node) > 40:
                long.append(f"{file.relative_to(PACKAGE)}: {node.name} has {n_lines(node)} lines")
        if file.name != "_registry_index.py" and text.count("\n") > 320:
            long.append(f"{file.relative_to(PACKAGE)} has {text.count(chr(10))} lines")
    assert long == []


def n_lines(function: ast.FunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    first, n = function.body[0], (function.end_lineno or 0) - function.lineno + 1
    return n - ((first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) else 0)


def test_the_loop_is_quoted_as_it_is() -> None:
    quoted = section("One loop").split("```python\n")[1].split("```")[0]
    source = (PACKAGE / "loop.py").read_text(encoding="utf-8")
    assert len(quoted.splitlines()) < 25
    assert textwrap.indent(quoted, "    ") in source


def test_the_arrows_of_the_picture_are_imports_and_every_package_is_in_it() -> None:
    picture = section("Packages").split("graph TD\n")[1].split("```")[0]
    arrows = set()
    for line in picture.splitlines():
        parts = [re.findall(r"\w+", part) for part in line.split("-->")]
        arrows |= {(above, below) for one, other in pairwise(parts) for above in one for below in other}
    wrong = [arrow for arrow in sorted(arrows) if arrow[1] not in imports(arrow[0])]
    assert wrong == []
    shown = {name for arrow in arrows for name in arrow}
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - shown == set()


def test_the_first_line_of_a_docstring_is_a_sentence() -> None:
    """Lists, help and the page of settings show it alone."""
    cut = []
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
                first = text.splitlines()[0]
                cut += [] if first.endswith((".", ":", "?")) else [f"{file.relative_to(PACKAGE)}: {first}"]
    assert cut == []


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions count; imports for type checkers alone do not."""
    graph = grimp.build_graph("driftline", exclude_type_checking_imports=True)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def imports(name: str) -> set[str]:
    """Return the packages and modules that a package or module imports, at its top or inside a function."""
    files = (PACKAGE / name).rglob("*.py") if (PACKAGE / name).is_dir() else [PACKAGE / f"{name}.py"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    several = re.findall(r"^ *from driftline import (.+)", text, flags=re.MULTILINE)
    return {*re.findall(r"driftline\.(\w+)", text), *(one for line in several for one in re.findall(r"\w+", line))}
