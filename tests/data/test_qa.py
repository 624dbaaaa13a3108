"""The same questions in every form, what is left out, every way a file can be broken, and the real ones."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from driftline.data import Dataset, load, locate, validate
from driftline.data.text_to_text import read_released_stream
from driftline.errors import UserError
from driftline.metrics.text import exact_match, token_f1
from driftline.tasks import TextToText
from driftline.text_answers import join_answers
from driftline.types import Samples

SKY = "The sky is blue . The sea is green ."
PARAGRAPHS = [
    {"context": SKY, "qas": [("q1", "What is blue ?", ["The sky", "sky"]), ("q2", "What is green ?", ["The sea"])]},
    {"context": "Rome is old .", "qas": [("q3", "Which city is old ?", ["Rome"])]},
]
X = [
    f"Question: What is blue ? </s> Context: {SKY}",
    f"Question: What is green ? </s> Context: {SKY}",
    "Question: Which city is old ? </s> Context: Rome is old .",
]
Y = [join_answers(["The sky", "sky"]), "The sea", "Rome"]


def write(path, lines):
    content = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (gzip.open if path.suffix == ".gz" else open)(path, "wb").write(content.encode())
    return str(path)


def mrqa(path, name="SQuAD", split="dev"):
    lines = [{"header": {"dataset": name, "split": split}}]
    for p in PARAGRAPHS:
        qas = [{"qid": i, "question": q, "answers": a, "detected_answers": []} for i, q, a in p["qas"]]
        lines.append({"context": p["context"], "qas": qas})
    return write(path, lines)


def squad(path):
    paragraphs = []
    for p in PARAGRAPHS:
        qas = [{"id": i, "question": q, "answers": [{"text": t, "answer_start": 0} for t in a]} for i, q, a in p["qas"]]
        paragraphs.append({"context": p["context"], "qas": qas})
    paragraphs[0]["qas"].append({"id": "q9", "question": "Who ?", "answers": [], "is_impossible": True})
    return write(path, [{"version": "2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}])


def flat(path, **extra):
    each = [(p["context"], *q) for p in PARAGRAPHS for q in p["qas"]]
    return write(path, [{"id": i, "question": q, "context": c, "answers": a, **extra} for c, i, q, a in each])


def test_every_form_gives_the_same_questions(tmp_path):
    one = load("qa", {"files": mrqa(tmp_path / "a.jsonl.gz")}, [])
    forms = [
        mrqa(tmp_path / "b.jsonl"),
        squad(tmp_path / "c.json"),
        squad(tmp_path / "d.json.gz"),
        flat(tmp_path / "e"),
    ]
    for file in forms:
        other = load("qa", {"files": [file]}, [])
        assert other.samples.x == one.samples.x == X
        assert other.samples.y.tolist() == one.samples.y.tolist() == Y
        assert other.samples.id.tolist() == one.samples.id.tolist() == ["q1", "q2", "q3"]
        assert other.published_answers is None
    assert isinstance(one.task, TextToText)
    assert (one.clusters, one.samples.group.tolist(), one.test) == (("SQuAD",), [0, 0, 0], None)


def test_mrqa_is_cleaned_as_the_released_files_are(tmp_path):
    qas = [{"qid": "a", "question": "who is \told", "answers": ["<P>Rome", "Rome", "old [SEP]Rome"]}]
    lines = [
        {"header": {"dataset": "NQ"}},
        {"context": "<P> [DOC] [TLE] Rome [PAR]It is\n old . </P>", "qas": qas},
        {"context": "<Tr><Td>1</Td></Tr>", "qas": qas},
    ]
    data = load("qa", {"files": write(tmp_path / "a.jsonl", lines)}, [])
    assert data.samples.x == ["Question: who is old ? </s> Context: Rome It is old ."]
    assert data.samples.y.tolist() == [join_answers(["Rome", "old Rome"])]
    assert data.notes[-1] == "1 inputs with a table in it are left out"
    squad = {"data": [{"paragraphs": [{"context": "<P> c", "qas": [{"id": "a", "question": "q", "answers": ["c"]}]}]}]}
    data = load("qa", {"files": write(tmp_path / "b.json", [squad])}, [])
    assert data.samples.x == ["Question: q </s> Context: <P> c"]


def test_sets_are_clusters_and_the_first_or_the_named_one_is_upstream(tmp_path):
    mrqa(tmp_path / "one.jsonl")
    lines = [{"question": f"{k} ?", "context": "c", "answers": ["c"], "dataset": "ab"[k % 2]} for k in range(4)]
    write(tmp_path / "two.jsonl", lines)
    data = load("qa", {"files": ["one.jsonl", "two.jsonl"]}, [tmp_path])
    assert data.clusters == ("SQuAD", "a", "b")
    assert data.samples.group.tolist() == [0, 0, 0, 1, 2, 1, 2]
    assert data.notes == ("SQuAD 3, a 2, b 2; upstream is SQuAD",)
    other = load("qa", {"files": ["one.jsonl", "two.jsonl"], "upstream": "B"}, [tmp_path])
    assert other.clusters == ("b", "SQuAD", "a")
    assert other.samples.group.tolist() == [1, 1, 1, 2, 0, 2, 0]
    assert other.fingerprint != data.fingerprint
    with pytest.raises(UserError, match=r"no upstream set 'SQuAd2'\. Did you mean 'SQuAD'"):
        load("qa", {"files": ["one.jsonl"], "upstream": "SQuAd2"}, [tmp_path])


def test_parts_and_answers_of_a_published_model_are_kept_if_all_have_them(tmp_path):
    known = {"bart_base_prediction": "The sea", "dataset": "s"}
    train, rest = flat(tmp_path / "a", split="train", **known), tmp_path / "b"
    write(rest, [{"input": "Question: z", "truth": ["z"], "id": "z", "mistake": "y", "split": "validation"}])
    data = load("qa", {"files": [train, str(rest)]}, [])
    assert data.test.tolist() == [False, False, False, True]
    assert data.published_answers.tolist() == ["The sea", "The sea", "The sea", "y"]
    assert exact_match(data.published_answers, data.samples.y).tolist() == [0, 1, 0, 0]
    write(rest, [{"input": "Question: z", "truth": ["z"]}])
    assert load("qa", {"files": [train, str(rest)]}, []).published_answers is None


def test_inputs_that_come_again_or_hold_a_table_are_left_out(tmp_path):
    record = {"question": "who ?", "context": "Ann", "answers": ["Ann"]}
    table = {**record, "context": "<Table> Ann </Table>"}
    row, again = {**record, "context": "<Tr> Ann </Tr>"}, {**record, "answers": ["Bob"]}
    path = write(tmp_path / "a.jsonl", [record, table, row, again])
    data = load("qa", {"files": path}, [])
    assert data.samples.y.tolist() == ["Ann", "Ann"]
    assert data.samples.id.tolist() == ["a-1", "a-3"]
    assert set(data.notes[1:]) == {"1 inputs that came before are left out", "1 inputs with a table in it are left out"}
    with pytest.raises(UserError, match="no input without a table"):
        load("qa", {"files": write(tmp_path / "b.jsonl", [table])}, [])


def test_the_same_id_in_two_sets_stays_apart(tmp_path):
    for name in "ab":
        write(tmp_path / f"{name}.jsonl", [{"id": "1", "input": name, "output": name}])
    data = load("text-to-text", {"files": ["a.jsonl", "b.jsonl"]}, [tmp_path])
    assert data.samples.id.tolist() == ["a/1", "b/1"]
    assert data.clusters == ("a", "b")


def test_a_file_in_the_current_folder_needs_no_full_path(tmp_path, monkeypatch):
    write(tmp_path / "a.jsonl", [{"input": "a", "output": "a"}])
    monkeypatch.chdir(tmp_path)
    assert load("text-to-text", {"files": ["a.jsonl"]}, [tmp_path / "other"]).samples.x == ["a"]


def test_plain_records_with_one_answer_or_several(tmp_path):
    lines = [{"input": " a ", "output": "b"}, {"input": "c", "output": ["d", " e "]}]
    data = load("text-to-text", {"files": [write(tmp_path / "p.jsonl", lines)]}, [])
    assert data.samples.x == ["a", "c"]
    assert data.samples.y.tolist() == ["b", join_answers(["d", "e"])]
    assert data.model == "small-bart"


@pytest.mark.parametrize(
    ("line", "published_answers"),
    [
        ({"question": "q", "context": "c"}, "'None' as the answers in line 2, not one text or more"),
        ({"question": "q", "context": "c", "answers": []}, "as the answers in line 2"),
        ({"question": "q", "context": "c", "answers": ["x", " "]}, "as the answers in line 2"),
        ({"question": "q", "context": "c", "answers": [3]}, "as the answers in line 2"),
        ({"question": "q", "answers": ["c"]}, "None as 'context' in line 2, not a text"),
        ({"context": "", "qas": []}, "'' as 'context' in line 2"),
        ({"context": "c", "qas": [{"question": "q", "qid": "7", "answers": []}]}, "to question 7 in line 2"),
        ({"context": "c", "qas": [{"question": "q", "answers": ["c"]}]}, "without 'question' or 'qid'"),
        ({"input": "q", "truth": None}, "as the answers in line 2"),
        ("{", "line 2 is no JSON"),
        ("[1]", "in line 2, not a record"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, line, published_answers):
    path = write(tmp_path / "a.jsonl", [{"header": {"dataset": "SQuAD"}}, line])
    with pytest.raises(UserError, match=published_answers) as caught:
        load("qa", {"files": path}, [])
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_or_empty_or_of_another_kind(tmp_path):
    with pytest.raises(UserError, match=r"qa/mrqa_subset.jsonl.gz.*MRQA-Shared-Task-2019"):
        load("qa", folders=[tmp_path])
    with pytest.raises(UserError, match=r"none of missing.jsonl in .*MRQA"):
        load("qa", {"files": "missing.jsonl"}, [tmp_path])
    with pytest.raises(UserError, match=r"nothing in .*empty.jsonl"):
        load("qa", {"files": write(tmp_path / "empty.jsonl", [])}, [])
    with pytest.raises(UserError, match=r"cannot read .*expected MRQA"):
        load("qa", {"files": write(tmp_path / "a.json", [{"answers": 1}])}, [])
    (tmp_path / "a.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(UserError, match=r"cannot read .*expected MRQA"):
        load("qa", {"files": str(tmp_path / "a.jsonl.gz")}, [])


def test_a_released_stream_is_its_distinct_samples_and_the_rows_of_each_step(tmp_path):
    one, two = ({"input": k, "truth": [k], "id": f"mrqa_{k}-dev-1", "mistake": "a"} for k in "ab")
    path = tmp_path / "stream.json.gz"
    write(path, [[[one, two, one], [two], []]])
    data, steps = read_released_stream(path, "mine", "b")
    assert [step.tolist() for step in steps] == [[0, 1, 0], [1], []]
    assert (data.clusters, data.samples.group.tolist(), data.published_answers.tolist()) == (
        ("b", "a"),
        [1, 0],
        ["a", "a"],
    )
    write(path, [[[one, {**two, "input": "a"}]]])
    with pytest.raises(UserError, match="the same input under two ids"):
        read_released_stream(path, "mine")


def lines(path):
    return gzip.decompress(path.read_bytes()).splitlines()


def real(folders, name):
    try:
        return locate(folders, [name], "qa", "")
    except UserError as error:
        pytest.skip(str(error))


def test_the_real_questions_and_what_the_published_model_said(real_data):
    path = real(real_data, "qa/mrqa_subset.jsonl.gz")
    data = load("qa", folders=real_data)
    names = ("squad", "naturalquestions", "hotpotqa", "triviaqa", "searchqa", "newsqa")
    sizes = [4129, 4979, 491, 499, 256, 256]
    assert data.clusters == names
    assert np.bincount(data.samples.group).tolist() == sizes
    assert len(data.samples) == 10610
    assert (~data.test).sum() == 1024 + 500
    printed = np.array([json.loads(line)["bart_base_f1"] for line in lines(path)])
    np.testing.assert_allclose(token_f1(data.published_answers, data.samples.y), printed, atol=1e-12)
    by_set = [exact_match(data.published_answers, data.samples.y)[data.samples.group == k].mean() for k in range(6)]
    np.testing.assert_allclose(by_set, [0.358, 0.607, 0.758, 0.693, 0.031, 0.352], atol=6e-4)


def test_the_real_evaluation_files_and_stream_agree_with_their_own_scores(real_data):
    files = [real(real_data, f"qa/cmr_qa_{part}_eval.jsonl.gz") for part in ("upstream", "heldout")]
    data = load("qa", {"files": [str(file) for file in files]}, [])
    assert data.clusters == ("squad", "nq", "trivia", "hotpot", "news", "search")
    assert np.bincount(data.samples.group).tolist() == [512, *[256] * 5]
    scores = [json.loads(line)["score"] for file in files for line in lines(file)]
    assert exact_match(data.published_answers, data.samples.y).tolist() == [score["EM"] for score in scores]
    np.testing.assert_allclose(
        token_f1(data.published_answers, data.samples.y), [s["QA-F1"] for s in scores], atol=1e-12
    )
    stream, steps = read_released_stream(real(real_data, "qa/cmr_nq_dev_data_stream.json.gz"), "nq")
    assert (len(stream.samples), stream.clusters) == (2064, ("naturalquestions",))
    assert [len(step) for step in steps] == [32] * 100


def test_real_squad_json(real_data):
    data = load("qa", {"files": str(real(real_data, "qa/xquad.en.json"))}, [])
    assert len(data.samples) == 1185  # of 1,190, five ask the same of the same text
    assert data.notes[1] == "5 inputs that came before are left out"


def test_clusters_are_the_numbers_of_the_groups_and_every_answer_of_a_model_has_its_sample():
    samples = Samples(x=["a", "b"], y=np.array(["c", "d"], dtype=object), time=np.zeros(2), group=np.array([0, 1]))
    good = Dataset(
        "mine", samples, TextToText(), clusters=("u", "v"), published_answers=np.array(["c", "x"], dtype=object)
    )
    validate(good)
    prints = {
        good.fingerprint,
        replace(good, published_answers=None).fingerprint,
        replace(good, clusters=("v", "u")).fingerprint,
    }
    assert len(prints) == 3
    for group in (np.array([0, 0]), np.array([1, 2]), np.array([0.0, 1.0]), None):
        with pytest.raises(UserError, match="names 2 clusters"):
            validate(replace(good, samples=replace(samples, group=group)))
    with pytest.raises(UserError, match="1 answers of a published model for 2 samples"):
        validate(replace(good, published_answers=np.array(["c"], dtype=object)))


@pytest.mark.parametrize("text", [rb'"\ud800"', b'"\xed\xa0\x80"', b'"\xff"'])
def test_a_text_that_is_no_unicode_is_refused_with_its_line(tmp_path, text):
    good = b'{"question": "a \\ud83d\\ude00", "context": "c", "answers": "c"}\n'
    (tmp_path / "q.jsonl").write_bytes(good + b'{"question": ' + text + b', "context": "c", "answers": "c"}\n')
    with pytest.raises(UserError, match=r"q\.jsonl: .*line 2 .*not valid Unicode"):
        load("qa", {"files": ["q.jsonl"]}, [tmp_path])
