"""Made-up questions: answers stand in their text, sets differ in manner alone, and all of it comes from a seed."""

import re

import numpy as np
import pytest

from driftline.data import load
from driftline.data.tiny_qa import AGES, PEOPLE, PHRASINGS, VALUES
from driftline.errors import UserError
from driftline.text_answers import matches, split_answers

DATA = load("tiny-qa", {"train": 300, "each": 200})
S = DATA.samples


def parts(text):
    question, context = text.split(" </s> ")
    return question.removeprefix("Question: "), context.removeprefix("Context: ")


def test_sizes_sets_and_what_is_held_out():
    assert DATA.clusters == tuple(PHRASINGS)
    assert np.bincount(S.group).tolist() == [500, *[200] * 5]
    assert np.bincount(S.group[~DATA.test], minlength=6).tolist() == [300, 0, 0, 0, 0, 0]
    assert len(set(S.x)) == len(S) == 1500


def test_every_answer_stands_in_its_context_after_or_beside_the_person_asked_about():
    assert len(S.x)
    for text, y in zip(S.x, S.y, strict=True):
        question, context = parts(text)
        (person,) = [name for name in PEOPLE if re.search(rf"\b{name}\b", question)]
        assert re.search(rf"\b{person}\b", context)
        assert len(re.findall(rf"\b{split_answers(y)[0]}\b", context)) == 1  # once: nobody else has the same
        assert split_answers(y)[0] not in question


def test_a_reader_of_each_manner_finds_all_its_answers():
    """Facts are taken apart again by their templates: the answer is the value of the person and thing asked about."""
    for k, (name, manner) in enumerate(PHRASINGS.items()):
        entry = re.escape(manner.entry).replace(r"\{p\}", "(?P<p>\\w+)").replace(r"\{facts\}", "(?P<facts>.*?)")
        rows = np.flatnonzero(S.group == k)[:100]
        assert len(rows) == 100
        for row in rows:
            question, context = parts(S.x[row])
            ((kind, person),) = [
                (kind, found[1])
                for kind, ask in manner.questions.items()
                if (found := re.fullmatch(re.escape(ask).replace(r"\{p\}", r"(\w+)"), question))
            ]
            near = context
            if manner.entry != "{facts}":
                stop = r"(?=$| \* )" if name == "lists" else ""
                near = next(e["facts"] for e in re.finditer(entry + stop, context) if e["p"] == person)
            revealed = re.escape(manner.statements[kind]).replace(r"\{p\}", person).replace(r"\{w\}", r"[\w ]+?")
            (value,) = re.findall(revealed.replace(r"\{v\}", f"({'|'.join(VALUES[kind])})"), near)
            assert matches(value, S.y[row])


def test_some_answers_have_several_wordings():
    several = {split_answers(y) for y in S.y if len(split_answers(y)) > 1}
    assert several == {(word, str(n)) for word, n in AGES.items()} | {
        (job, job.split()[1]) for job in VALUES["job"] if " " in job
    }
    share = np.mean([len(split_answers(y)) > 1 for y in S.y])
    assert 0.2 < share < 0.35  # ages, a fifth, and three trades of ten


def test_all_kinds_of_facts_are_asked_for_about_equally_in_each_set():
    kinds = {value: kind for kind, values in VALUES.items() for value in values}
    for k in range(6):
        asked = [kinds[split_answers(y)[0]] for y in S.y[(S.group == k) & DATA.test]]
        counts = [asked.count(kind) for kind in VALUES]
        assert min(counts) > 20, counts  # 40 expected; below 20 with a chance of about 1 in 10,000


def test_manners_share_people_and_values_but_not_their_words():
    shared = set(" ".join([*PEOPLE, *sum(VALUES.values(), ())]).split()) | {"Question:", "Context:", "</s>", "."}
    words = [set(" ".join(np.array(S.x)[S.group == k]).split()) - shared for k in range(6)]
    for k in range(1, 6):
        new = words[k] - words[0]
        assert len(new) > 0.5 * len(words[k]), DATA.clusters[k]


def test_it_comes_from_the_seed_alone_and_evaluations_do_not_depend_on_the_training_set():
    again, longer, other = (
        load("tiny-qa", {"train": n, "each": 200, "seed": s}) for n, s in ((300, 0), (310, 0), (300, 1))
    )
    assert again.fingerprint == DATA.fingerprint
    assert other.fingerprint != DATA.fingerprint
    held = [x for x, test in zip(S.x, DATA.test, strict=True) if test]
    assert [x for x, test in zip(longer.samples.x, longer.test, strict=True) if test] == held
    assert longer.samples.x[:300] == S.x[:300]
    fewer = load("tiny-qa", {"train": 1, "each": 5})
    assert fewer.samples.x[1:6] == held[:5]


def test_at_least_one_of_everything():
    for options in ({"train": 0}, {"each": 0}):
        with pytest.raises(UserError, match="both must be 1 or more"):
            load("tiny-qa", options)
