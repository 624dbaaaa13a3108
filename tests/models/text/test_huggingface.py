"""Models from a folder or the hub: the same answers as when they were saved, and a sentence for what is missing."""

import json
import sys

import numpy as np
import pytest
import torch

from driftline import models
from driftline.errors import MissingExtra, UserError
from driftline.learners.supervised.ft import FineTune
from driftline.models.preprocessing import to_float_batch
from driftline.models.text import tokenizer as words
from driftline.seeds import Seed
from driftline.tasks import TextToText
from driftline.training.torch_model import torch_model

transformers = pytest.importorskip("transformers")

TASK = TextToText()
X = [
    "Question: who ? </s> Context: Ann saw the sea .",
    "Question: where ? </s> Context: it was in Rome , at night , and nobody knew why it had to be there .",
    "Question: what ? </s> Context: Ann saw the sea .",
]
Y = np.array(["Ann", "in Rome", "the sea"], dtype=object)


def trained_learner(model, updates=60):
    learner = FineTune(updates=updates, batch=3, lr=3e-3)
    learner.prepare(model, TASK)
    learner.learn(X, Y)
    return learner


def losses(model):
    inputs, targets = to_float_batch(model.encode(X)), model.targets(Y)
    with torch.no_grad():
        return TASK.loss(torch_model(model).training_outputs(inputs, targets), targets).numpy()


def saved(folder, kind="bart"):
    """A tiny model on disk, as Hugging Face saves it; and its words."""
    model = models.build("small-bart", (), 0, Seed(0), width=32, vocab_size=300, dropout=0.0)
    model.build_vocabulary(X, Y)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words.optional_import("tokenizers", "").Tokenizer.from_str(model.tokenizer.content),
        **{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
    )
    tokenizer.save_pretrained(folder)
    marks = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    if kind == "bart":
        trained_learner(model)
        model.network.save_pretrained(folder)
        return model
    config = transformers.T5Config(vocab_size=300, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, **marks)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return None


def test_a_bart_from_a_folder_answers_as_the_one_that_was_saved(tmp_path):
    trained = saved(tmp_path)
    model = models.build("seq2seq", (), 0, Seed(5), weights=str(tmp_path), num_beams=1, max_answer_tokens=16)
    assert model.tokenizer.encode(X) == trained.tokenizer.encode(X)
    assert model.generate(X).tolist() == trained.generate(X).tolist()
    assert [text.strip() for text in model.generate(X)] == ["Ann", "in Rome", "the sea"]
    np.testing.assert_allclose(losses(model), losses(trained), rtol=1e-6)
    assert model.max_input_tokens == 256  # no more than it has places for
    assert model.get_extra_state() == ""


def test_a_name_on_the_hub_is_the_folder_that_the_hub_keeps(tmp_path, monkeypatch):
    saved(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, allow_patterns: str(tmp_path))
    model = models.build("seq2seq", (), 0, weights="some/model", num_beams=2)
    assert [text.strip() for text in model.generate(X)] == ["Ann", "in Rome", "the sea"]
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model.safetensors.* is missing .*hf download some/model"):
        models.build("seq2seq", (), 0, weights="some/model")


def test_a_t5_from_a_folder_learns(tmp_path):
    saved(tmp_path, "t5")
    model = models.build("seq2seq", (), 0, weights=str(tmp_path), num_beams=1, max_input_tokens=64)
    assert trained_learner(model, updates=120).predict(X).prediction.tolist() == ["Ann", "in Rome", "the sea"]


def test_words_in_the_files_that_bart_was_published_with(tmp_path):
    trained = saved(tmp_path)
    content = json.loads(trained.tokenizer.content)["model"]
    merges = "\n".join(["#version: 0.2", *(" ".join(pair) for pair in content["merges"])])
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text(json.dumps(content["vocab"]))
    (tmp_path / "merges.txt").write_text(merges)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 1024}))
    found = models.build("seq2seq", (), 0, weights=str(tmp_path)).tokenizer
    assert (found.pad, found.end) == (1, 2)
    spaced = trained.tokenizer.encode(["Ann saw"])
    assert found.encode([" Ann saw"]) == spaced  # BART itself does not take a space for granted
    assert found.encode(["Ann saw"]) != spaced


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named_with_the_way_to_get_it(tmp_path, name):
    saved(tmp_path, "t5")
    (tmp_path / name).rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=rf"{name}.* is missing in {tmp_path}.*hf download") as caught:
        models.build("seq2seq", (), 0, weights=str(tmp_path))
    assert ("is a pickle, which is never loaded" in str(caught.value)) == (name == "model.safetensors")


def unreachable(name, allow_patterns):
    assert not any("bin" in pattern for pattern in allow_patterns)
    raise OSError("no route.")


def test_what_cannot_be_loaded_is_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"there is no folder .*hf download"):
        models.build("seq2seq", (), 0, weights=str(tmp_path / "nowhere"))
    saved(tmp_path, "t5")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(UserError, match="cannot load"):
        models.build("seq2seq", (), 0, weights=str(tmp_path))
    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(UserError, match=r"cannot fetch some/model: no route\. Get it with `hf download some/model"):
        models.build("seq2seq", (), 0, weights="some/model")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"driftline\[text\]"):
        models.build("seq2seq", (), 0, weights=str(tmp_path))


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("model.safetensors", "", "header too small"),
        ("model.safetensors", "cut short", "header"),
        ("config.json", "[]", "mapping"),
        ("tokenizer.json", '{"model": 1}', "no 'added_tokens'"),
    ],
)
def test_a_damaged_file_is_a_sentence_with_the_way_to_get_it(tmp_path, file, content, words):
    saved(tmp_path, "t5")
    (tmp_path / file).write_text(content)
    for model, outputs in (("seq2seq", 0), ("minilm", 2)):
        with pytest.raises(UserError, match=rf"cannot load {tmp_path}: .*{words}.*hf download"):
            models.build(model, (), outputs, Seed(0), weights=str(tmp_path))


@pytest.mark.parametrize("change", [{"num_layers": 3}, {"d_ff": 32}])
def test_weights_that_would_be_random_are_refused(tmp_path, change):
    saved(tmp_path, "t5")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(UserError, match=r"the weights in .* lack "):
        models.build("seq2seq", (), 0, Seed(0), weights=str(tmp_path))
