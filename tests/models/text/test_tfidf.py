"""Texts as inputs: nothing of later texts is known before they are shown."""

import subprocess
import sys
import zlib

import numpy as np
import pytest
import torch

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.fit import fit, optimizer_step
from driftline.training.torch_model import torch_model

X = [f"{word} {k}" for k in range(20) for word in ("stars and planets", "goals and players", "votes and laws")]
Y = np.tile([0, 1, 2], 20)
TASK = Classification(("sky", "sport", "state"))


def trained(updates=60, **options):
    model = models.build("hashed-ngrams", (), 3, Seed(1), **options)
    descent = torch.optim.Adam(model.parameters(), lr=0.01)
    update = lambda x, y: optimizer_step(descent, TASK.loss(model(x), y).mean())  # noqa: E731
    fit(model, model.encode(X), Y, update, updates=updates, batch=16, seed=Seed(0))
    return model


def test_tfidf_learns_words_and_only_those_it_was_shown():
    model = models.build("tfidf", (), 3)
    assert model.predict(X).tolist() == [[0, 0, 0]] * 60
    model.fit(X, Y)
    assert (model.predict(["new planets", "players", "the laws"]).argmax(1) == [0, 1, 2]).all()
    assert set(model._fitted[0].vocabulary_) == {w for text in X for w in text.split()}
    unknown = np.exp(model.predict(["comet", ""]))
    np.testing.assert_allclose(unknown[0], unknown[1])  # a word never shown says as much as none
    model.fit(X[:3], Y[:3])
    assert len(model._fitted[0].vocabulary_) == 8


def test_tfidf_survives_what_streams_bring():
    model, fresh = models.build("tfidf", (), 3), models.build("tfidf", (), 3)
    model.fit(["", "?"], np.array([0, 1]))
    np.testing.assert_allclose(np.exp(model.predict(["", "word"]))[:, :2], 0.5, atol=1e-6)
    model.fit(["a"], np.array([2]))
    assert np.exp(model.predict(["b", "c"])).tolist() == [[0, 0, 1]] * 2
    model.fit(X, Y)
    fresh.restore(model.state())
    assert np.array_equal(model.predict(X), fresh.predict(X))


def test_the_rows_of_a_text_are_hashes_of_its_words_and_pairs():
    model = models.build("hashed-ngrams", (), 3, buckets=1000)
    rows = model.encode(["Red sun", "", "red"])
    row = lambda gram: 1 + zlib.crc32(gram) % 999  # noqa: E731
    assert rows.tolist() == [[row(b"red"), row(b"sun"), row(b"red sun")], [row(b""), 0, 0], [row(b"red"), 0, 0]]
    assert model.encode(rows) is rows
    assert model.encode([]).shape == (0, 1)
    assert models.build("hashed-ngrams", (), 3, max_ngrams=2, ngram_max=1).encode(["a b c"]).shape == (1, 2)


def test_the_hash_is_the_same_in_every_process():
    code = (
        "from driftline import models; "
        "print(hash('red sun'), models.build('hashed-ngrams', (), 2).encode(['red sun']).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": "1"}, capture_output=True, text=True)
    assert hash("red sun") != int(done.stdout.split()[0])
    assert done.stdout.split(maxsplit=1)[1] == f"{models.build('hashed-ngrams', (), 2).encode(['red sun']).tolist()}\n"


def test_the_network_is_a_scaled_sum_of_rows_and_a_perceptron():
    model = models.build("hashed-ngrams", (), 3, width=8)
    rows = model.encode(["red sun", "blue"])
    table, (hidden, _), head = model.table.weight.detach(), model.hidden, model.head
    sums = torch.stack([table[rows[0].long()].sum(0) / 3**0.5, table[rows[1, 0].long()]])
    np.testing.assert_allclose(model(rows).detach(), head(hidden(sums).relu()).detach(), atol=1e-6)
    assert table[0].abs().max() == 0
    assert 0.029 < table[1:].std() < 0.031
    assert sum(p.numel() for p in model.parameters()) == 2**15 * 8 + 8 * 8 + 8 + 8 * 3 + 3


def test_padding_changes_nothing():
    model = trained(5)
    alone = torch_model(model).predict(model.encode(["votes"]))
    beside = torch_model(model).predict(model.encode(["votes", "many more words than that one has"]))
    np.testing.assert_allclose(alone[0], beside[0], atol=1e-6)


def test_the_network_learns_and_its_padding_stays_zero():
    model = trained()
    assert (torch_model(model).predict(model.encode(["planets", "players", "laws"])).argmax(1) == [0, 1, 2]).all()
    assert model.table.weight[0].abs().max() == 0


def test_large_rows_stay_exact_as_floats():
    model = models.build("hashed-ngrams", (), 2, buckets=2**24, width=1)
    rows = torch.tensor([[2**24 - 1, 2**24 - 2]], dtype=torch.int32)
    assert torch.equal(model(rows.float()), model(rows))


def test_what_it_refuses():
    with pytest.raises(UserError, match="inputs that were mixed"):
        trained(0)(torch.tensor([[1.5, 2.0]]))
    for name in ("tfidf", "hashed-ngrams"):
        with pytest.raises(UserError, match=rf"{name} takes texts, and these inputs are numbers of shape \(8, 8, 1\)"):
            models.build(name, (8, 8, 1), 3)
    with pytest.raises(UserError, match="buckets=1"):
        models.build("hashed-ngrams", (), 2, buckets=1)
