"""A published model that is known by its answers: it repeats them, and says what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline import models
from driftline.data import load
from driftline.errors import UserError
from driftline.metrics.text import exact_match

ANSWERS = (["one ?", "two ?"], ["1", "two"])


def test_it_says_what_was_said_whatever_it_is_trained() -> None:
    model = models.build("published-answers", (), 0, published_answers=ANSWERS)
    assert model.predict(["two ?", "one ?", "two ?"]).tolist() == ["two", "1", "two"]
    model.fit(["one ?"], np.array(["one"], dtype=object))
    model.restore(model.state())
    assert model.predict(["one ?"]).tolist() == ["1"]


def test_what_it_was_never_asked_it_does_not_know() -> None:
    with pytest.raises(
        UserError, match=r"no published answer to 'three \?': the model 'published-answers' has answers"
    ):
        models.build("published-answers", (), 0, published_answers=ANSWERS).predict(["one ?", "three ?"])


def test_what_it_cannot_be_made_of() -> None:
    with pytest.raises(UserError, match="these data hold none: use qa, nli or text-to-text"):
        models.build("published-answers", (), 0)
    with pytest.raises(UserError, match="this task has classes: use answers=text"):
        models.build("published-answers", (), 3, published_answers=ANSWERS)


def test_only_models_that_ask_for_it_are_given_what_was_said() -> None:
    assert models.needs_published_answers("published-answers")
    assert not models.needs_published_answers("logistic-regression")
    assert not models.needs_published_answers("sklearn.naive_bayes.GaussianNB")


def written(folder: Path, **changes: Any) -> str:
    """Twenty questions of each of three sets; the model knows the first set, half of the second, none of the third."""
    records = []
    for name, right in (("a", 1), ("b", 2), ("c", 0)):
        for k in range(20):
            output = "yes" if right and k % right == 0 else "no"
            records.append({"input": f"{name}{k}", "output": "yes", "dataset": name, "mistake": output, **changes})
    path = folder / "sets.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


def spec(path: str, method: str = "frozen") -> dict[str, Any]:
    sizes = {
        "upstream_set": 5,
        "held_out": 8,
        "episodes": 4,
        "queries_per_episode": 4,
        "period": 2,
        "train": 0.2,
        "resamples": 5,
    }
    return {
        "benchmark": "refinement",
        "data": {"name": "text-to-text", "files": [path]},
        "model": "published-answers",
        "methods": [method],
        "refinement": {**sizes, "upstream_updates": 0},
    }


def test_a_run_of_it_is_the_published_model_unrefined(tmp_path: Path) -> None:
    record = driftline.run(spec(written(tmp_path)), runs=tmp_path / "runs")
    final = record.scores[record.scores["stat"] == "final"].set_index("metric")["value"]
    assert (final["ukr"], final["efr"]) == (1.0, 0.0)
    held_out = record.probes[record.probes["probe"] == "held out"]
    assert held_out[held_out["id"].str.startswith("c")]["correct"].sum() == 0
    assert final["kg"] == held_out[held_out["step"] == 3]["correct"].mean()
    assert final["csr"] == record.answers["correct"].mean()
    assert set(record.answers["prediction"]) == {"yes", "no"}


def test_it_cannot_be_refined_and_needs_answers_to_repeat(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs a network, and the model 'published-answers' is not one"):
        driftline.run(spec(written(tmp_path), "cft"), runs=tmp_path / "runs")
    with pytest.raises(UserError, match="these data hold none"):
        driftline.run(spec(written(tmp_path, mistake=None)), runs=tmp_path / "runs")


def test_the_released_files_hold_the_printed_numbers_of_the_frozen_model(real_data: list[Path]) -> None:
    """Table 1 prints UKR 80.27 and KG 31.25: 411 of 512 and 400 of 1,280."""
    names = [f"qa/cmr_qa_{part}_eval.jsonl.gz" for part in ("upstream", "heldout")]
    try:
        data = load("qa", {"files": names}, real_data)
    except UserError as error:
        pytest.skip(str(error))
    assert data.published_answers is not None
    assert data.samples.group is not None
    model = models.build("published-answers", (), 0, published_answers=(data.samples.x, data.published_answers))
    right = exact_match(model.predict(data.samples.x), data.samples.y)
    upstream = data.samples.group == 0
    assert (right[upstream].sum(), upstream.sum()) == (411, 512)
    assert (right[~upstream].sum(), (~upstream).sum()) == (400, 1280)
