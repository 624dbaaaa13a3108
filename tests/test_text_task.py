"""Answers that are texts: the loss of a token by hand, and answers that survive the record and a checkpoint."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn

from driftline.io import serialization
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import IGNORE_INDEX, Classification, TextToText, mean_loss
from driftline.text_answers import join_answers
from driftline.training.fit import accumulated_step, optimizer_step
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Reveal, Samples, Step

TASK = TextToText()
P = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], [[0.2, 0.2, 0.6], [0.3, 0.3, 0.4]]])
Y = torch.tensor([[0, 2], [1, IGNORE_INDEX]])


def test_the_loss_is_the_mean_over_the_tokens_that_count():
    by_hand = [-(np.log(0.5) + np.log(0.8)) / 2, -np.log(0.2)]
    np.testing.assert_allclose(TASK.loss(P.log(), Y), by_hand, rtol=1e-6)
    np.testing.assert_allclose(mean_loss(TASK, P.log(), Y), np.mean(by_hand), rtol=1e-6)
    raw = P.log() + torch.tensor([3.0, -2.0])[:, None, None]  # raw outputs, not probabilities
    np.testing.assert_allclose(TASK.loss(raw, Y), by_hand, rtol=1e-5)


def test_columns_of_targets_beyond_the_outputs_are_padding():
    wider = torch.cat([Y, torch.full((2, 3), IGNORE_INDEX)], 1)
    assert torch.equal(TASK.loss(P.log(), wider), TASK.loss(P.log(), Y))


def test_an_answer_without_tokens_loses_nothing():
    assert TASK.loss(P.log(), torch.full((2, 2), IGNORE_INDEX)).tolist() == [0, 0]


def test_smoothing_spreads_a_share_over_the_vocabulary():
    first = 0.9 * -np.log([0.5, 0.8]) + 0.1 * -np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]).mean(1)
    second = 0.9 * -np.log(0.2) + 0.1 * -np.log([0.2, 0.2, 0.6]).mean()
    np.testing.assert_allclose(TextToText(label_smoothing=0.1).loss(P.log(), Y), [first.mean(), second], rtol=1e-6)


def test_an_exact_match_with_any_accepted_answer_is_right():
    y = np.array([join_answers(["Rome", "the city"]), "Oslo", ""], dtype=object)
    assert TASK.correct(np.array(["City!", "Oslo city", ""], dtype=object), y).tolist() == [1, 0, 0]
    assert TASK.targets(y).tolist() == ["Rome", "Oslo", ""]
    drawn = [TASK.sample_answers(y, np.random.default_rng(k))[0] for k in range(200)]
    assert 70 < drawn.count("Rome") < 130
    assert set(drawn) == {"Rome", "the city"}
    assert TASK.decode(np.array([" Rome\n", ""], dtype=object)).prediction.tolist() == ["Rome", ""]


def test_answers_survive_a_record_and_a_checkpoint(tmp_path):
    y = np.array([join_answers(["Rome", "Roma"]), "Oslo"], dtype=object)
    samples = Samples(x=["a", "b"], y=y, id=np.array(["q-1", "q-2"], dtype=object))
    recorder = FileRecorder(TASK, tmp_path, lambda: (1, 2))
    recorder.add_answers(Step(0, "t", samples), Answers(np.array(["roma", "Bergen"], dtype=object)))
    recorder.finish(tmp_path)
    rows = pq.read_table(tmp_path / "answers.parquet").to_pydict()
    assert (rows["prediction"], rows["truth"], rows["id"]) == (["roma", "Bergen"], y.tolist(), ["q-1", "q-2"])
    assert rows["correct"] == [1, 0]
    serialization.save({"x": samples.x, "y": y}, tmp_path / "saved")
    back = serialization.load(tmp_path / "saved")
    assert back["x"] == samples.x
    assert back["y"].dtype == object
    assert back["y"].tolist() == y.tolist()


def test_only_errors_are_shown_with_all_their_answers():
    y = np.array([join_answers(["Rome", "Roma"]), join_answers(["Oslo", "Kristiania"])], dtype=object)
    step = Step(0, "t", Samples(x=["a", "b"], y=y))
    shown = RevealPolicy(TASK, Reveal.ERRORS, Seed(0))(step, Answers(np.array(["Roma!", "Bergen"], dtype=object)))
    assert (shown.x, shown.y.tolist()) == (["b"], [join_answers(["Oslo", "Kristiania"])])


class Echo(nn.Module):
    """Writes what it read; led, it is sure of the token 2."""

    def teacher_forced(self, x, y):
        return torch.tensor([0.0, 0.0, 9.0]).expand(*y.shape, 3)

    def targets(self, y):
        return torch.tensor([[len(text)] for text in y])

    def generate(self, x):
        assert not self.training
        assert not torch.is_grad_enabled()
        return np.array([text.upper() for text in x], dtype=object)


def test_a_model_that_writes_is_led_and_asked_through_the_same_functions_as_any_other():
    echo, plain = Echo().train(), nn.Linear(2, 3)
    assert TASK.decode(torch_model(echo).predict(["a ", "b"])).prediction.tolist() == ["A", "B"]
    assert echo.training
    y = torch_model(echo).targets(np.array(["ab", "a"], dtype=object))
    np.testing.assert_allclose(
        TASK.loss(torch_model(echo).training_outputs(torch.zeros(2, 1), y), y), [0.0002, 9.0002], atol=1e-4
    )
    x, labels = torch.ones(2, 2), torch_model(plain).targets(np.array([1, 2]))
    assert labels.tolist() == [1, 2]
    assert torch.equal(torch_model(plain).training_outputs(x, labels), plain(x))


@pytest.mark.parametrize("most", [1, 3, 4, 7, 100])
def test_gradients_added_up_in_parts_are_those_of_the_whole_batch(most):
    task, draws = Classification(("a", "b", "c")), torch.Generator().manual_seed(0)
    x, y = torch.randn(7, 4, generator=draws), torch.randint(3, (7,), generator=draws)
    weights = []
    for parts in (False, True):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            model = nn.Linear(4, 3).double()
        loss = lambda x, y, m=model: mean_loss(task, m(x), y) + m.weight.square().sum()  # noqa: E731
        descent = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(2):  # the second step must not see the gradient of the first
            if parts:
                accumulated_step(descent, loss, x.double(), y, most)
            else:
                optimizer_step(descent, loss(x.double(), y))
        weights.append(torch.cat([w.detach().flatten() for w in model.parameters()]))
    torch.testing.assert_close(*weights, rtol=1e-12, atol=1e-12)
