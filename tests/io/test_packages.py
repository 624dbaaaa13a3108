"""Packages that are missing, lack another one, or are broken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from driftline.errors import MissingExtra, UserError
from driftline.io.packages import import_package
from driftline.models.text.tokenizer import optional_import


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import absent_inner", "installed but needs absent_inner, which is not: pip install absent_inner"),
        ("import email.absent", "needs email.absent, which is not: pip install email"),
        ("raise RuntimeError('built for\\n another torch')", "broken: RuntimeError: built for another torch"),
        ("from math import absent", "broken: ImportError: cannot import name 'absent'"),
    ],
)
def test_what_is_wrong_is_said(source: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "outer_package.py").write_text(source)
    with pytest.raises(UserError, match=f"model 'x' needs outer_package, which is.* {reason}"):
        optional_import("outer_package", "model 'x'")
    assert "outer_package" not in sys.modules


def test_a_missing_package_is_left_to_the_caller() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_package("absent_package", "model 'x'")
    with pytest.raises(MissingExtra, match="model 'x' needs"):
        optional_import("absent_package", "model 'x'")
