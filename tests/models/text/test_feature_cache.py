"""Features on disk: the same bits as without, with several writers and damaged files."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch

from driftline import models
from driftline.models.text import encoders, minilm
from driftline.models.text.feature_cache import WRITE_BATCH, FeatureCache, feature_cache
from driftline.seeds import Seed

transformers = pytest.importorskip("transformers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
TEXTS = [" ".join(np.random.default_rng(k).choice(WORDS[5:], 1 + k % 9)) + f" {'z ' * (k % 3)}" for k in range(300)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT with random weights, as Hugging Face saves it."""
    path = tmp_path_factory.mktemp("bert")
    (path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(path / "vocab.txt")).save_pretrained(path)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(**sizes, intermediate_size=64, max_position_embeddings=24)
        transformers.BertModel(config).save_pretrained(path)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache folder for the length of a test."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("DRIFTLINE_FEATURES", raising=False)
    minilm._shared.cache_clear()
    yield tmp_path / "cache" / "driftline" / "features"
    minilm._shared.cache_clear()


def fresh(folder, **options):
    """A model whose process has just begun."""
    minilm._shared.cache_clear()
    return models.build("minilm", (), 2, Seed(1), weights=str(folder), **options)


def nothing_is_computed(monkeypatch):
    monkeypatch.setattr(encoders, "pool", None)


def distinct(texts):
    return len(set(texts))


def files(cache):
    return sorted(cache.rglob("*.safetensors"))


def test_features_from_disk_are_the_same_bits(folder, cache, monkeypatch):
    monkeypatch.setenv("DRIFTLINE_FEATURES", "off")
    without = fresh(folder).encode(TEXTS)
    assert not cache.exists()
    monkeypatch.delenv("DRIFTLINE_FEATURES")
    first = fresh(folder).encode(TEXTS)
    lots = len(files(cache))
    assert lots == distinct(TEXTS) // WRITE_BATCH >= 2
    nothing_is_computed(monkeypatch)
    model = fresh(folder)
    known = model._encoder.cache.load(TEXTS)
    assert WRITE_BATCH * lots <= len(known) < WRITE_BATCH * (lots + 1)
    again = model.encode(list(known))
    assert torch.equal(first, without)
    assert torch.equal(again, torch.stack([without[TEXTS.index(text)] for text in known]))


def test_switched_off_nothing_is_read(folder, cache, monkeypatch):
    fresh(folder).encode(TEXTS)
    assert files(cache)
    monkeypatch.setenv("DRIFTLINE_FEATURES", "off")
    nothing_is_computed(monkeypatch)
    with pytest.raises(TypeError, match="not callable"):
        fresh(folder).encode(TEXTS[:1])


def test_another_encoder_has_another_folder(folder, tmp_path, monkeypatch):
    def place(path=folder, how="12 tokens"):
        return feature_cache(path, how).folder

    assert place() == place()
    assert place() != place(how="13 tokens")
    copied = tmp_path / "copied"
    copied.mkdir()
    for file in Path(folder).iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    assert place(copied) == place()  # content counts, not where it is
    weights = bytearray((copied / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copied / "model.safetensors").write_bytes(weights)
    assert place(copied) != place()
    assert fresh(folder)._encoder.cache.folder != fresh(folder, max_tokens=8)._encoder.cache.folder
    before = place()
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert place() != before  # another version may compute other bits


@pytest.mark.parametrize("damage", ["cut", "empty", "header", "flipped bit", "wrong name"])
def test_a_damaged_file_is_removed_and_written_again(folder, cache, damage):
    right = fresh(folder).encode(TEXTS)
    written = files(cache)
    victim, content = written[0], bytearray(written[0].read_bytes())
    if damage == "wrong name":
        victim.rename(victim.with_stem("0" * 64))
    elif damage == "flipped bit":
        content[-5] ^= 4
    elif damage == "header":
        content[:9] = b"x" * 9
    else:
        content = content[: len(content) // 2 if damage == "cut" else 0]
    if damage != "wrong name":
        victim.write_bytes(content)
    model = fresh(folder)
    assert torch.equal(model.encode(TEXTS), right)
    whole = files(cache)
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.stem for path in whole)
    assert len(whole) == len(written)
    assert torch.equal(fresh(folder).encode(TEXTS), right)


def test_few_texts_wait_for_others(folder, cache, monkeypatch):
    model = fresh(folder)
    names = list(dict.fromkeys(TEXTS))
    for text in names[: WRITE_BATCH - 1]:
        model.encode([text])
    assert not files(cache)
    model.encode([names[WRITE_BATCH - 1]])
    assert len(files(cache)) == 1
    nothing_is_computed(monkeypatch)
    assert fresh(folder).encode(names[:WRITE_BATCH]).shape == (WRITE_BATCH, 32)


def test_what_memory_forgets_is_found_on_disk(folder, cache, monkeypatch):
    model = fresh(folder)
    names = list(dict.fromkeys(TEXTS))[:WRITE_BATCH]
    before = model.encode(names)
    monkeypatch.setattr(encoders, "MAX_CACHED_TEXTS", 2)
    nothing_is_computed(monkeypatch)
    assert torch.equal(model.encode(names), before)


def test_a_disk_that_refuses_does_not_stop_a_run(folder, cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    right = fresh(folder).encode(TEXTS)
    assert torch.equal(fresh(folder).encode(TEXTS), right)
    assert cache.is_file()


def test_several_write_at_once(tmp_path):
    """Some of what they write is the same, and nothing is lost or mixed up."""
    together = Barrier(4)

    def write(begin):
        mine = FeatureCache(tmp_path / "at once")  # a process has its own
        for lot in range(12):
            together.wait(60)
            mine.add({f"{k} of {lot}": torch.full((8,), float(k + lot)) for k in range(begin, begin + WRITE_BATCH)})

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, (0, 0, WRITE_BATCH // 2, WRITE_BATCH // 2)))
    wanted = {f"{k} of {lot}": float(k + lot) for lot in range(12) for k in range(WRITE_BATCH + WRITE_BATCH // 2)}
    found = FeatureCache(tmp_path / "at once").load(wanted)
    assert {text: row.unique().tolist() for text, row in found.items()} == {t: [v] for t, v in wanted.items()}
    assert [path.suffix for path in (tmp_path / "at once").iterdir()] == [".safetensors"] * 24


def test_any_text_has_a_hash():
    odd = ["", "\ud800", "\x00", "é", "é"]
    store = FeatureCache(Path("nowhere"))
    assert store.load(odd) == {}
