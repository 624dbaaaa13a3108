"""Meanings of settings and the source papers of things, read from source code.

A setting's meaning is the comment behind its field or parameter, or the docstring below its field. A subclass inherits
it. A paper is what the module's docstring, else its package's, cites as: authors, "title", venue and year.
"""

from __future__ import annotations

import ast
import functools
import inspect
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from typing import Any

NAME = r"[^\W\da-z_][\w'-]+"
CITATION = re.compile(rf'{NAME}(?:(?:, | and | & ){NAME})*(?: et al\.)?, "[^"]+", (?:[\w ]+ )?(?:19|20)\d\d')


def meanings(thing: Any) -> dict[str, str]:
    """Return the meaning of each documented setting of a class, function or preset."""
    inner = inspect.unwrap(thing.func if isinstance(thing, functools.partial) else thing)
    parts = reversed(inner.__mro__) if isinstance(inner, type) else [inner]
    return {name: meaning for part in parts for name, meaning in _documented(part)}


def paper(thing: Any) -> str:
    """Return the papers that the docstring of a thing's module cites; those of its package if it cites none."""
    module = inspect.unwrap(getattr(thing, "func", thing)).__module__
    for name in (module, module.rpartition(".")[0]):
        if cited := citations(inspect.getdoc(sys.modules.get(name)) or ""):
            return cited
    return ""


def citations(text: str) -> str:
    """Return the papers that a text cites with authors, title and year.

    >>> citations('As in Wang et al., "Tent", ICLR 2021: less entropy. It is not Li and Hoiem, "LwF", 2017.')
    'Wang et al., "Tent", ICLR 2021; Li and Hoiem, "LwF", 2017'
    """
    return "; ".join(dict.fromkeys(CITATION.findall(" ".join(text.split()))))


@functools.cache
def _documented(part: Any) -> tuple[tuple[str, str], ...]:
    """Return the settings with a meaning in the source of one class or function; none if it has no source."""
    try:
        source = textwrap.dedent(inspect.getsource(part))
        node = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return ()
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = [
        (name, docstring or " ".join(comments[line] for line in range(first, last + 1) if line in comments))
        for name, first, last, docstring in (_fields(node) if isinstance(node, ast.ClassDef) else _parameters(node))
    ]
    return tuple((name, _sentence(meaning)) for name, meaning in found if meaning)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, int, int, str]]:
    """Yield the fields of a class: name, first and last line, docstring."""
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield field.target.id, field.lineno, field.end_lineno or field.lineno, " ".join(str(text).split())


def _parameters(node: ast.stmt) -> Iterator[tuple[str, int, int, str]]:
    """Yield the parameters of a function: name, first and last line, no docstring."""
    if isinstance(node, ast.FunctionDef):
        defaults = dict(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            last = defaults.get(argument) or argument
            yield argument.arg, argument.lineno, last.end_lineno or argument.lineno, ""


def _sentence(text: str) -> str:
    """Return a meaning as it is shown: with a capital if it starts with a word, and YAML's null for None.

    >>> _sentence("size of a batch; None: all."), _sentence("ewc: its decay")
    ('Size of a batch; null: all', 'ewc: its decay')
    """
    text = text.removesuffix(".").replace("None:", "null:")
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+ ", text) else text
