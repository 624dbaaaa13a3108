"""Pairs of sentences in the forms of several corpora, as texts to write and as classes, and the released files."""

import gzip
import json

import numpy as np
import pytest

from driftline.data import load, locate
from driftline.data.nli import LABELS
from driftline.data.text_to_text import read_released_stream
from driftline.errors import UserError
from driftline.metrics.text import exact_match
from driftline.tasks import Classification

END = "| Options: entailment, neutral, contradiction"


def write(path, lines):
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return str(path)


def test_pairs_with_the_names_and_labels_of_several_corpora(tmp_path):
    lines = [
        {"premise": "p0", "hypothesis": "h", "label": 2},
        {"sentence1": "p1", "sentence2": "h", "gold_label": "neutral", "pairID": "x"},
        {"sentence1": "p2", "sentence2": "h", "gold_label": "entails"},
        {"context": "p3", "hypothesis": "h", "label": "c", "uid": "u"},
        {"premise": "p4", "hypothesis": "h", "label": -1},
        {"sentence1": "p5", "sentence2": "h", "gold_label": "-"},
        {"input": f"Premise: p6 </s> Hypothesis: h {END} ", "truth": ["entailment"], "id": "z", "data_name": "anli"},
    ]
    data = load("nli", {"files": write(tmp_path / "snli.jsonl", lines)}, [])
    assert data.samples.x == [f"Premise: p{k} </s> Hypothesis: h {END}" for k in (0, 1, 2, 3, 6)]
    assert data.samples.y.tolist() == ["contradiction", "neutral", "entailment", "contradiction", "entailment"]
    assert data.samples.id.tolist() == ["snli-1", "x", "snli-3", "u", "z"]
    assert data.clusters == ("snli", "anli")
    assert data.samples.group.tolist() == [0, 0, 0, 0, 1]


def test_labels_as_classes(tmp_path):
    lines = [
        {"input": "a", "truth": ["neutral"], "mistake": "entailment"},
        {"input": "b", "truth": ["contradiction"], "mistake": "entailment, neutral"},
    ]
    path = write(tmp_path / "a.jsonl", lines)
    data = load("nli", {"files": path, "answers": "classes"}, [])
    assert data.task == Classification(LABELS)
    assert data.samples.y.tolist() == [1, 2]
    assert data.published_answers.tolist() == [0, -1]
    assert data.model == "tfidf"
    with pytest.raises(UserError, match="'yes' is not one of the labels"):
        load("nli", {"files": write(tmp_path / "b", [{"input": "a", "truth": ["yes"]}]), "answers": "classes"}, [])
    with pytest.raises(UserError, match=r"no answers of dataset 'nli' .*Known: classes, text"):
        load("nli", {"files": path, "answers": "numbers"}, [])


@pytest.mark.parametrize(
    ("line", "published_answers"),
    [
        ({"premise": "p", "hypothesis": "h", "label": 3}, "3 as the label in line 1"),
        ({"premise": "p", "hypothesis": "h", "label": True}, "True as the label in line 1"),
        ({"premise": "p", "hypothesis": "h"}, "None as the label in line 1"),
        ({"premise": "p", "label": 1}, "None as 'hypothesis' in line 1"),
        ({"label": 1}, "None as 'premise' in line 1"),
    ],
)
def test_what_is_wrong_with_a_pair_is_said(tmp_path, line, published_answers):
    with pytest.raises(UserError, match=published_answers):
        load("nli", {"files": write(tmp_path / "a.jsonl", [line])}, [])


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(UserError, match=r"cmr_nli_upstream_eval.*snli"):
        load("nli", folders=[tmp_path])


def test_the_released_evaluation_files(real_data):
    try:
        data = load("nli", folders=real_data)
    except UserError as error:
        pytest.skip(str(error))
    assert data.clusters == ("snli", "multi_nli_matched", "multi_nli_mismatched", "scitail", "anli")
    assert np.bincount(data.samples.group).tolist() == [512, *[256] * 4]
    right = exact_match(data.published_answers, data.samples.y)
    classes = load("nli", {"answers": "classes"}, real_data)
    assert right.sum() == (classes.published_answers == classes.samples.y).sum() == 377


def test_the_released_stream(real_data):
    name = "nli/cmr_nli_submission_stream.T=100,b=64,alpha=0.9,beta=0.5,gamma=0.8.json.gz"
    try:
        path = locate(real_data, [name], "nli", "")
    except UserError as error:
        pytest.skip(str(error))
    data, steps = read_released_stream(path, "nli", "snli")
    assert (len(data.samples), len(steps), {len(step) for step in steps}) == (5684, 100, {64})
    upstream = [int((data.samples.group[step] == 0).sum()) for step in steps]
    assert upstream == [round(64 * 0.9**t) for t in range(100)]  # 640 in all, rounded and not cut
    assert sum(upstream) == 640
    scores = [record["score"]["EM"] for step in json.loads(gzip.decompress(path.read_bytes())) for record in step]
    rows = np.concatenate(steps)
    assert exact_match(data.published_answers[rows], data.samples.y[rows]).tolist() == scores
    pool = load("nli", {"files": str(path)}, [])
    assert (len(pool.samples), pool.clusters) == (5684, data.clusters)
    assert np.isin(pool.published_answers, LABELS).sum() == 3551  # the others are no label at all


def test_a_stream_is_a_pool_of_its_pairs(tmp_path):
    one, two = ({"input": k, "truth": ["neutral"], "id": f"{k}-1", "mistake": "neutral"} for k in "ab")
    path = tmp_path / "stream.T=2,alpha=0.9.json"
    path.write_text(json.dumps([[one, two], [one]]))
    data = load("nli", {"files": str(path)}, [])
    assert (data.samples.x, data.clusters) == (["a", "b"], ("a", "b"))
    assert data.notes == ("a 1, b 1; upstream is a",)
    path.write_text("{}")
    with pytest.raises(UserError, match="nothing in"):
        load("nli", {"files": str(path)}, [])
    path.write_text('{"a": [1]}')
    with pytest.raises(UserError, match="a JSON list of time steps"):
        load("nli", {"files": str(path)}, [])
