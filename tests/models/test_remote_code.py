"""A folder of Hugging Face that names code of its own: nobody is asked, and none is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed

pytest.importorskip("transformers")
CODE = "open({mark!r}, 'w').close()\nfrom transformers import BertConfig as Odd\n"
CLASSES = ("AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM", "AutoModelForImageClassification")


@pytest.mark.parametrize(
    ("name", "shape", "outputs"), [("seq2seq", (), 0), ("minilm", (), 2), ("huggingface-images", (32, 32, 3), 2)]
)
def test_no_code_of_a_folder_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shape: tuple[int, ...], outputs: int
) -> None:
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "odd.py").write_text(CODE.format(mark=str(tmp_path / "run")))
    config = {"model_type": "odd", "auto_map": dict.fromkeys(CLASSES, "odd.Odd") | {"AutoTokenizer": ["odd.Odd", None]}}
    for file in ("config.json", "tokenizer_config.json"):
        (folder / file).write_text(json.dumps(config))
    for file in ("model.safetensors", "tokenizer.json"):
        (folder / file).touch()
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(UserError, match="cannot load"):
        models.build(name, shape, outputs, Seed(0), weights=str(folder))
    assert not (tmp_path / "run").exists()
