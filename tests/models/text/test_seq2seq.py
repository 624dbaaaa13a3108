"""A small BART: losses and work by hand, words from the first training round, methods that do not know of texts."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from driftline import device, models
from driftline.data.tiny_qa import tiny_qa
from driftline.device import DeviceSettings
from driftline.errors import UserError
from driftline.io import serialization
from driftline.learners.supervised.a_gem import AGEM
from driftline.learners.supervised.ewc import EWC
from driftline.learners.supervised.ft import FineTune
from driftline.models.preprocessing import to_float_batch
from driftline.models.text import tokenizer
from driftline.seeds import Seed
from driftline.tasks import IGNORE_INDEX, TextToText
from driftline.text_answers import join_answers
from driftline.training.fisher import fisher
from driftline.training.fit import training_tensors
from driftline.training.mac_counter import MacCounter
from driftline.training.modes import evaluating
from driftline.training.regularization import trainable_parameters
from driftline.training.torch_model import torch_model

pytest.importorskip("transformers")

TASK = TextToText()
X = [
    "Question: who ? </s> Context: Ann saw the sea .",
    "Question: where ? </s> Context: it was in Rome , at night , and nobody knew why it had to be there .",
    "Question: what ? </s> Context: Ann saw the sea .",
]
Y = np.array([join_answers(["Ann", "she"]), "in Rome", "the sea"], dtype=object)


def small(seed=0, **options):
    return models.build("small-bart", (), 0, Seed(seed), **{"width": 32, "vocab_size": 300, "dropout": 0.0, **options})


def ready(seed=0, **options):
    model = small(seed, **options)
    model.build_vocabulary(X, TASK.targets(Y))
    return model


def learner(kind=FineTune, model=None, **settings):
    made = kind(**{"updates": 60, "batch": 3, "lr": 3e-3, **settings})
    made.seed = Seed(1)
    made.prepare(model or small(), TASK)
    return made


def losses(model, x, y):
    inputs, targets = to_float_batch(model.encode(x)), model.targets(TASK.targets(y))
    with torch.no_grad():
        return TASK.loss(torch_model(model).training_outputs(inputs, targets), targets).numpy()


def weights(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_checkpointed_layers_learn_the_same_to_the_bit():
    found = []
    for checkpointed in (False, True):
        with device.use(DeviceSettings(name="cpu", checkpoint_activations=checkpointed)):
            trained_learner = learner(model=small(dropout=0.2), updates=4)
            trained_learner.learn(X, Y)
            found.append((weights(trained_learner.model), trained_learner.predict(X).prediction.tolist()))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_it_learns_three_answers_and_writes_them_in_the_order_of_the_questions():
    trained_learner = learner()
    assert trained_learner.predict(X).prediction.tolist() == ["", "", ""]  # no words yet
    trained_learner.learn(X, Y)
    assert trained_learner.predict(X).prediction.tolist() == ["Ann", "in Rome", "the sea"]
    assert trained_learner.predict(X[::-1]).prediction.tolist() == ["the sea", "in Rome", "Ann"]
    assert trained_learner.predict([]).prediction.tolist() == []
    trained_learner.model.num_beams = 3
    assert trained_learner.predict(X).prediction.tolist() == ["Ann", "in Rome", "the sea"]


def test_two_runs_are_the_same_to_the_bit_with_dropout_too():
    one, two, other = (learner(model=small(seed, dropout=0.1), updates=5) for seed in (0, 0, 1))
    for each in (one, two, other):
        each.learn(X, Y)
    assert torch.equal(weights(one.model), weights(two.model))
    assert not torch.equal(weights(one.model), weights(other.model))


def test_the_loss_of_a_batch_is_the_loss_of_each_alone_whatever_the_padding():
    model = ready()
    together = losses(model, X, Y)
    np.testing.assert_allclose(together, [losses(model, [x], Y[[k]])[0] for k, x in enumerate(X)], rtol=1e-5)
    padded = torch.nn.functional.pad(model.encode(X[:1]), (0, 50), value=model.tokenizer.pad)
    targets = torch.nn.functional.pad(model.targets(["Ann"]), (0, 9), value=IGNORE_INDEX)
    with torch.no_grad():
        np.testing.assert_allclose(
            TASK.loss(model.teacher_forced(padded.float(), targets), targets), together[:1], rtol=1e-5
        )


def test_the_loss_is_that_of_hugging_face():
    model = ready()
    for k, x in enumerate(X):
        tokens, labels = model.encode([x]).long(), model.targets(TASK.targets(Y[[k]]))
        with torch.no_grad():
            theirs = model.network(input_ids=tokens, labels=labels).loss
        np.testing.assert_allclose(losses(model, [x], Y[[k]]), [theirs], rtol=1e-5)


def test_fisher_is_the_mean_of_squared_slopes_of_single_answers():
    model, by_hand = ready(), 0
    for k, x in enumerate(X):
        labels = model.targets(TASK.targets(Y[[k]]))
        model.zero_grad()
        model.network(input_ids=model.encode([x]).long(), labels=labels).loss.backward()
        by_hand = by_hand + torch.cat([w.grad.flatten() for w in trainable_parameters(model)]) ** 2 / len(X)
    found = fisher(model, TASK, X, Y, labels="empirical", seed=Seed(0))
    torch.testing.assert_close(found, by_hand, rtol=1e-3, atol=1e-9)


def test_precision_is_that_of_the_device():
    model = ready()
    exact = losses(model, X, Y)
    with device.use(DeviceSettings(name="cpu", precision="bfloat16")):
        rough = losses(model, X, Y)
    assert rough.dtype == np.float32
    assert 0 < np.abs(rough - exact).max() < 0.05


def test_long_texts_are_cut_before_their_end_mark_and_counted():
    model = ready(max_input_tokens=20, max_answer_tokens=4)
    rows = model.tokenizer.encode(X)
    assert [len(row) > 20 for row in rows] == [False, True, False]
    tokens = model.encode(X)
    assert tokens.shape == (3, 20)
    assert tokens[1].tolist() == [*rows[1][:19], model.tokenizer.end]
    assert tokens[0].tolist() == rows[0] + [model.tokenizer.pad] * (20 - len(rows[0]))
    assert (model.count_truncated(X), model.count_truncated([X[1]] * 3), model.count_truncated([])) == (1, 3, 0)
    assert model.targets(["Ann saw the sea at night"]).shape == (1, 4)
    assert model.targets(["Ann saw the sea at night"])[0, -1] == model.tokenizer.end
    assert model.generate(X).shape == (3,)


def test_any_text_goes_through_the_words_and_back():
    found = tokenizer.train_bpe(X, 300)
    for text in ["Ann saw the sea .", "Ünknown ☃ 雪", "x", ""]:
        assert found.decode(found.encode([text]))[0].strip() == text
    assert found.decode(found.encode([X[0]]))[0].split() == X[0].replace("</s>", "").split()
    assert found.encode([X[0]])[0].count(found.end) == 2  # between the parts, and at the end
    assert len(found) <= 300
    (start, ann, end), inside = found.encode(["Ann", "saw Ann"])[0], found.encode(["saw Ann"])[0]
    assert (start, end, inside[-2:]) == (0, 2, [ann, 2])  # a word is the same token at the start of a text
    assert found.decode([[0, 9999, 2]]) == [""]
    with pytest.raises(UserError, match="261 or more"):
        tokenizer.train_bpe(X, 100)


def test_words_are_the_same_in_every_process():
    code = f"from driftline.models.text.tokenizer import train_bpe; print(hash(0), train_bpe({X!r}, 280).content)"
    output = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": s}, capture_output=True
        ).stdout
        for s in "12"
    }
    assert output == {f"0 {tokenizer.train_bpe(X, 280).content}\n".encode()}


def test_words_come_from_the_first_training_round_alone_and_survive_with_the_weights(tmp_path):
    one = learner(EWC, updates=8)
    one.learn(X, Y)
    first = one.model.tokenizer.content
    serialization.save(one.state(), tmp_path / "state")
    other = learner(EWC, updates=8)
    other.restore(serialization.load(tmp_path / "state"))
    for each in (one, other):
        each.learn(["zebras zebras zebras"] * 3, Y)
        assert each.model.tokenizer.content == first
    assert torch.equal(weights(one.model), weights(other.model))
    one.train_from_scratch(["zebras zebras zebras"] * 3, Y)
    assert "zebras" in one.model.tokenizer.content
    assert "zebras" not in first


@pytest.mark.parametrize("kind", [EWC, AGEM])
def test_methods_written_for_images_learn_to_write(kind):
    trained_learner = learner(kind)
    trained_learner.learn(X[:2], Y[:2])
    trained_learner.learn(X[2:], Y[2:])
    assert trained_learner.predict(X).prediction.tolist()[2] == "the sea"
    if kind is AGEM:
        assert trained_learner.buffer.y.tolist() == Y.tolist()  # all accepted answers are remembered


def test_parts_of_a_batch_move_the_weights_as_the_whole_does():
    sgd = {"updates": 3, "optimizer": "sgd", "lr": 0.1}  # Adam makes steps of rounding errors
    whole, parts = learner(**sgd), learner(model=small(micro_batch=2), **sgd)
    for each in (whole, parts):
        each.learn(X, Y)
    torch.testing.assert_close(weights(whole.model), weights(parts.model), rtol=1e-4, atol=1e-6)


def macs(length, steps, d=32, layers=2, vocab_size=300):
    """Multiply-accumulates for one text and an answer, by hand: encoder, decoder without and with a cache."""
    feed = 2 * d * 2 * d
    encoder = layers * (length * (4 * d * d + feed) + 2 * length**2 * d)
    across = layers * 2 * length * d * d
    per_token = layers * (4 * d * d + 2 * d * d + 2 * length * d + feed) + d * vocab_size
    led = encoder + across + steps * per_token + layers * 2 * steps**2 * d
    written = encoder + across + steps * per_token + layers * 2 * d * sum(range(1, steps + 1))
    return led, written


def test_the_work_of_a_pass_is_counted():
    model, meter = ready(), MacCounter()
    meter.attach(model)
    inputs, targets = training_tensors(model, X[:1] * 2, np.array(["Ann", "Ann"], dtype=object))
    length, steps = inputs.shape[1], targets.shape[1]
    assert (steps, length < 32) == (3, True)
    loss = TASK.loss(torch_model(model).training_outputs(to_float_batch(inputs), targets), targets).mean()
    assert meter.forward == 2 * macs(length, steps)[0]
    assert meter.backward == 0
    loss.backward()
    # Each product has two in its way back; tokens have no slope, so nothing is saved nor added.
    assert meter.backward == 2 * meter.forward


def test_the_work_of_writing_is_counted_by_how_long_the_answers_are():
    model, meter = ready(max_answer_tokens=7), MacCounter()
    meter.attach(model)
    with evaluating(model), torch.no_grad():
        model.tokenizer, kept = None, model.tokenizer
        model.generate(X)
        assert meter.forward == 0
        model.tokenizer = kept
        model.network.generation_config.eos_token_id = None  # write to the very end
        model.generate(X[:1])
        length = model.encode(X[:1]).shape[1]
        assert meter.forward == macs(length, 7)[1]
        before, model.max_answer_tokens = meter.forward, 3
        model.generate(X[:1])
        assert meter.forward - before == macs(length, 3)[1]
        before, model.max_answer_tokens = meter.forward, 7
        model.generate(X[:1])
        assert meter.forward - before == macs(length, 7)[1]


def test_an_answer_that_ends_early_is_counted_to_its_end():
    model, meter = small(), MacCounter()
    learner(model=model).learn(X, Y)
    meter.attach(model)
    with torch.no_grad():
        assert model.generate(X[:1]).tolist() == [" Ann"]
    assert meter.forward == macs(model.encode(X[:1]).shape[1], 3)[1]  # its start, itself and its end


def test_only_texts_to_write_about_and_only_being_led():
    with pytest.raises(UserError, match="takes texts"):
        models.build("small-bart", (8, 8, 1), 0)
    with pytest.raises(UserError, match="generates texts, and this task has 3 classes"):
        models.build("small-bart", (), 3)
    with pytest.raises(UserError, match="multiple of its heads"):
        small(width=30)
    with pytest.raises(UserError, match="beams=0"):
        small(num_beams=0)
    with pytest.raises(UserError, match="not trained yet"):
        small().encode(X)
    model = ready()
    with pytest.raises(UserError, match="trains by teacher forcing"):
        model(model.encode(X))
    with pytest.raises(UserError, match="mixed"):
        model(model.encode(X) + 0.5)


def test_batches_of_many_lengths_meet_few_shapes():
    data, model = tiny_qa(train=64, each=1), small(vocab_size=600)
    inputs, targets = training_tensors(model, data.samples.x, TASK.targets(data.samples.y))
    meter = MacCounter()
    meter.attach(model)
    with torch.no_grad():
        for rows in torch.arange(64).split(4):
            model.teacher_forced(inputs[rows].float(), targets[rows])
    assert len(meter._cache) <= 6
    widths = {given[0][0][1] for _, _, given, _ in meter._cache}
    assert all(width % 16 == 0 or width == inputs.shape[1] for width in widths)
