"""What the documents show must work."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import driftline
from driftline import recipes, registry
from driftline.auditing import gate
from driftline.learners import Learner
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.torch_model import torch_model

from .documents import Reader, blocks

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reader:
    """Somebody who follows a document in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("DRIFTLINE_RUNS", raising=False)
    return Reader(monkeypatch, capsys)


def test_the_tutorial_can_be_followed(reader: Reader) -> None:
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        reader.follow(block)
        if not block.language:
            printed, shown = (" ".join(text.split()) for text in (reader.output, block.text))
            assert [part for part in shown.split("...") if part.strip() not in printed] == []
    assert "gate failed: tas<0.9" in reader.output
    assert "The model ages" in reader.output, "the table is generated that way"
    assert "0 stage(s) computed, 18 reused, 0 failed" in reader.output, "the second run reuses everything"
    assert r"\toprule" in Path("table.tex").read_text(encoding="utf-8")
    assert Path("report.html").stat().st_size > 10_000
    assert Path("curves.pdf").read_bytes().startswith(b"%PDF")
    with open("curves.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"frozen", "cft", "ER"}
    assert r"{}ER & " in Path("refine.tex").read_text(encoding="utf-8")
    assert all(row["n"] and row["low"] for row in rows)


def test_the_readme_can_be_followed(reader: Reader) -> None:
    found = blocks(ROOT / "README.md")
    assert any(block.language == "bash" for block in found)
    for block in found:
        reader.follow(block)


def test_what_extending_shows_works(reader: Reader) -> None:
    found = blocks(ROOT / "docs" / "extending.md")
    for block in found:
        reader.follow(block)
    assert "lamps" in reader.output
    assert "fade.py" in reader.output


def test_what_write_a_method_shows_works(reader: Reader) -> None:
    for block in blocks(ROOT / "docs" / "write-a-method.md"):
        reader.follow(block)
    assert "half_way.py has the method HalfWay" in reader.output
    assert "der_pp.py:DerPP" in reader.output
    assert "latest_two.py:LatestTwo" in reader.output


def test_the_table_and_the_figure_for_a_paper_are_what_their_commands_make(reader: Reader) -> None:
    """Numbers may differ in the last digit, since other processors round differently."""
    number = re.compile(r"\d+(?:\.\d+)?")
    page = ROOT / "docs" / "tables.md"
    for block in blocks(page):
        reader.follow(block)
    start, end = "### refinement", "over three streams."
    shown, printed = (text[text.rindex(start) :].partition(end)[0] for text in (page.read_text(), reader.output))
    assert number.sub("", printed) == number.sub("", shown)
    pairs = [[float(one) for one in number.findall(text)] for text in (printed, shown)]
    assert pairs[0] == pytest.approx(pairs[1], abs=0.11)
    texts = [
        re.findall(r">([^<>]+)</text>", file.read_text()) for file in (Path("curves.svg"), page.parent / "curves.svg")
    ]
    assert texts[0] == texts[1]


def test_what_models_shows_works(reader: Reader) -> None:
    for block in blocks(ROOT / "docs" / "models.md"):
        reader.follow(block)
    assert '"initialized": [\n   "head.bias",\n   "head.weight"\n  ]' in reader.output
    assert "has a head with 26 outputs, and these data need 10 outputs: --set model.head=new" in reader.output
    assert "frozen never sees labels, so it needs a pretrained model" in reader.output


def test_the_method_in_architecture_runs_beside_built_in_ones(tmp_path: Path) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    (source,) = re.findall(r"```python\n(\"\"\"Half-way.*?)```", text, flags=re.DOTALL)
    file = tmp_path / "half_way.py"
    file.write_text(source.replace('@register("method", "half-way")\n', ""))
    spec = {
        "benchmark": "timeline",
        "data": {"name": "digits", "periods": 4},
        "model": "linear",
        "methods": [{"name": "ft", "lr": 0.01}, {"name": f"{file}:HalfWay", "lr": 0.01, "keep": 0.0}],
        "timeline": {"resamples": 10},
    }
    ft, half_way = driftline.run(spec, runs=tmp_path / "runs").runs
    assert ft.table("probes")["prediction"].equals(half_way.table("probes")["prediction"]), "keeping nothing is ft"


def test_der_pp_of_write_a_method_adds_its_two_terms_to_fine_tuning(tmp_path: Path) -> None:
    (block,) = [one for one in blocks(ROOT / "docs" / "write-a-method.md") if one.marks.get("title") == "der_pp.py"]
    (tmp_path / "der_pp.py").write_text(block.text)
    make = registry.get("method", f"{tmp_path}/der_pp.py:DerPP")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)).astype(np.float32), np.arange(20) % 2

    def learned(learner: Learner) -> Learner:
        learner.prepare(registry.get("model", "linear")((3,), 2, Seed(1)), Classification(("a", "b")))
        learner.learn(x, y)
        learner.learn(-x, y)
        return learner

    plain, ft = learned(make(alpha=0, beta=0, updates=5)), learned(registry.get("method", "ft")(updates=5))
    assert np.array_equal(plain.predict(x).scores, ft.predict(x).scores), "without its terms it is ft"
    der = learned(make(alpha=2, beta=3, updates=5, batch=40))  # a batch has the whole buffer, in some order
    stored = der.memory.y
    outputs = torch_model(der.model).predict(np.concatenate([x, -x]))
    assert np.allclose(stored[20:, 1:], outputs[20:]), "outputs of the latest round"
    fine_tuning = der.loss(torch.tensor(outputs), torch.tensor(np.tile(y, 2))).item()
    by_hand = fine_tuning + 2 * np.square(stored[:, 1:] - outputs).mean() + 3 * fine_tuning
    loss = der.batch_loss(torch.tensor(np.concatenate([x, -x])), torch.tensor(np.tile(y, 2))).item()
    assert loss == pytest.approx(by_hand, rel=1e-5)


def test_the_documents_name_commands_that_exist() -> None:
    from typer.main import get_command

    from driftline.cli.main import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    text = "\n".join((ROOT / name).read_text() for name in DOCUMENTS)
    used = set(re.findall(r"^\s*(?:\$ )?driftline ([a-z][a-z0-9-]*)", text, flags=re.MULTILINE))
    assert used <= known, f"{used - known} are in the documents, not in the command line"


def test_conditions_of_gates_can_be_used() -> None:
    page = (ROOT / "docs" / "ci-gate.md").read_text()
    conditions = re.findall(r'--fail-if "([^"]+)"', page) + re.findall(r"\? \| `([^`]+)` \|", page)
    assert len(conditions) == 7
    for condition in conditions:
        gate.check(condition)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_files_that_documents_point_to_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    for path in re.findall(r"\]\(((?!https?:)[^)#]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / name).parent / path).exists(), path
    for recipe in re.findall(r"recipe:[a-z][\w/.-]+", text):
        assert recipes.path_of(recipe.rstrip(".")).exists()


def test_the_map_has_every_page() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    missing = [name for name in DOCUMENTS if name.startswith("docs/") and f"({Path(name).name})" not in text]
    assert missing in ([], ["docs/index.md"]), f"docs/index.md does not name {missing}"
