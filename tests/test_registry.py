from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from driftline import _registry_index, registry
from driftline.errors import UserError


def test_registered_things_are_found_by_name() -> None:
    assert {"erm", "erm-all", "frozen", "ft"} <= set(registry.names("method"))
    assert registry.names("method") == sorted(registry.names("method"))
    assert registry.get("method", "erm-all")().start == "fresh"


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(UserError, match=r"no method 'forzen'\. Did you mean 'frozen'\?"):
        registry.get("method", "forzen")


def test_two_things_of_one_name_are_refused() -> None:
    registry.get("method", "ft")  # it is registered when it is first asked for
    with pytest.raises(ValueError, match="two methods are called 'ft'"):
        registry.register("method", "ft")(object())


def test_a_file_of_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from driftline.learners.base import Learner\nclass Mine(Learner):\n    pass\nclass Other:\n    pass\n"
    )
    mine = registry.get("method", f"{file}:Mine")
    assert mine.__name__ == "Mine"
    assert registry.get("method", f"{file}:Mine") is mine
    with pytest.raises(UserError, match=r"is not a driftline\.learners\.base\.Learner"):
        registry.get("method", f"{file}:Other")
    with pytest.raises(UserError, match="has no 'Yours'"):
        registry.get("method", f"{file}:Yours")
    with pytest.raises(UserError, match=r"cannot import .*other\.py"):
        registry.get("method", f"{tmp_path}/other.py:Mine")
    assert registry.get("method", "driftline.learners.supervised.ft:FineTune") is registry.get("method", "ft")
    with pytest.raises(UserError, match="cannot import nowhere"):
        registry.get("method", "nowhere:Mine")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_index_is_current() -> None:
    """After a change of names, settings or first docstring lines: ./dev index."""
    script = Path(__file__).with_name("registry_index.py")
    made = subprocess.run([sys.executable, script, "--print"], capture_output=True, text=True, check=True).stdout
    assert made == Path(_registry_index.__file__).read_text(encoding="utf-8")


def test_naming_and_listing_import_the_index_alone_and_getting_imports_one_module() -> None:
    code = (
        "import sys; from driftline import registry; before = set(sys.modules)\n"
        "for kind in registry.KINDS:\n"
        "    [registry.summary(kind, name) for name in registry.names(kind)]\n"
        "print(sorted(name for name in set(sys.modules) - before if name.startswith(('driftline', 'torch'))))\n"
        "registry.get('metric', 'csr'); print('driftline.metrics.openworld' in sys.modules)"
    )
    assert python(code) == "['driftline._registry_index']\nFalse"


def test_the_help_does_without_the_index() -> None:
    code = "import sys, driftline.cli.main; print('driftline._registry_index' in sys.modules)"
    assert python(code) == "False"


def test_settings_come_from_the_index_without_the_module() -> None:
    code = (
        "import sys; from driftline.spec.settings import Choice, with_defaults\n"
        "print(with_defaults('model', Choice(name='mlp', settings={'width': '8'})).settings)\n"
        "print(with_defaults('method', Choice(name='lp-ft')).settings['layers'], 'torch' in sys.modules)"
    )
    assert python(code) == "{'width': 8, 'depth': 2}\nfc>all False"


def test_jobs_of_all_methods_are_made_without_torch() -> None:
    code = (
        "import sys; from driftline import registry; from driftline.spec import parse\n"
        "names = [name for name in registry.names('method') if name != 'retrain-on-drift']\n"
        "jobs = parse({'benchmark': 'seq-to-final', 'data': 'digits', 'methods': names}).jobs('conv-1')\n"
        "print(len(jobs) == len(names), 'torch' in sys.modules)"
    )
    assert python(code) == "True False"


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "of_worlds.py").write_text("import torch_of_another_world")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "EXTRAS", {"torch_of_another_world": "worlds"})
    monkeypatch.setitem(registry.index()["method"], "far", ("of_worlds", "Far away."))
    with pytest.raises(UserError, match=r"method 'far' needs torch_of_another_world: .*driftline\[worlds\]"):
        registry.get("method", "far")
    monkeypatch.setattr(registry, "EXTRAS", {})
    with pytest.raises(
        UserError, match="method 'far' needs torch_of_another_world: pip install torch_of_another_world"
    ):
        registry.get("method", "far")


def test_what_is_no_model_is_refused_as_such_whatever_its_annotations() -> None:
    with pytest.raises(UserError, match=r"model 'pandas:read_pickle' is not a .*, nor a function annotated to return"):
        registry.get("model", "pandas:read_pickle")
