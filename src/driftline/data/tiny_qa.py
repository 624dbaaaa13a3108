"""Generated questions about fictional people: prose upstream, and five sets with other phrasings.

Nothing is downloaded: each sample is drawn from a seed. A context tells some facts (a person, an attribute, a value) in
the phrasing of its set, and the question asks for one of the values, which is in the context. All sets share people,
attributes and values, so that a model trained on prose fails on other sets because of the phrasing alone:

- prose, upstream: two to four plain sentences;
- lists: an entry per person, the values by keyword;
- reversed: the value first and the person last, in the question too;
- distractors: each fact among past or false ones and those about other people;
- telegrams: no function words, no punctuation;
- talk: the people speak about themselves, and the question is about their words.

Some answers are accepted in several wordings: ages as words and digits, trades of two words also by the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driftline.data import Dataset
from driftline.data.qa import join_question
from driftline.data.text_to_text import TextRecord, build_dataset
from driftline.errors import UserError
from driftline.registry import register
from driftline.seeds import Seed

PEOPLE = (
    *("Ann", "Bob", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jane"),
    *("Kim", "Leo", "Mia", "Nils", "Olga", "Paul", "Rosa", "Sam", "Tess", "Uma"),
)
AGES = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
VALUES = {
    "home": ("Rome", "Oslo", "Lima", "Cairo", "Delhi", "Quito", "Paris", "Tunis", "Bern", "Kyoto", "Accra", "Perth"),
    "job": ("baker", "judge", "night guard", "pilot", "nurse", "tax clerk", "painter", "tailor", "ship cook", "farmer"),
    "pet": ("cat", "dog", "goat", "parrot", "snake", "turtle", "rabbit", "horse", "hamster", "donkey"),
    "age": tuple(AGES),
    "dish": ("soup", "rice", "lentils", "noodles", "stew", "salad", "curry", "pancakes", "dumplings", "beans"),
}


@dataclass(frozen=True)
class Phrasing:
    """A set's templates of facts and questions: `{p}` is the person, `{v}` the value, `{w}` a wrong one."""

    statements: dict[str, str]
    questions: dict[str, str]
    entry: str = "{facts}"
    """Around the facts of one person."""
    separator: str = " "


PHRASINGS = {
    "prose": Phrasing(
        statements={
            "home": "{p} lives in {v} .",
            "job": "{p} works as a {v} .",
            "pet": "{p} keeps a {v} .",
            "age": "{p} is {v} years old .",
            "dish": "{p} likes to eat {v} .",
        },
        questions={
            "home": "Where does {p} live ?",
            "job": "What does {p} work as ?",
            "pet": "Which animal does {p} keep ?",
            "age": "How old is {p} ?",
            "dish": "What does {p} like to eat ?",
        },
    ),
    "lists": Phrasing(
        statements={name: f"{name} = {{v}}" for name in VALUES},
        questions={name: f"{{p}} / {name}" for name in VALUES},
        entry="* {p} : {facts}",
        separator=" ; ",
    ),
    "reversed": Phrasing(
        statements={
            "home": "In {v} , that is where one finds {p} .",
            "job": "A {v} by trade , that is {p} .",
            "pet": "A {v} belongs to {p} .",
            "age": "Of {v} years , so old is {p} .",
            "dish": "For {v} there is nobody like {p} .",
        },
        questions={
            "home": "In which city one finds {p} ?",
            "job": "By trade , what is {p} ?",
            "pet": "What animal belongs to {p} ?",
            "age": "Of how many years is {p} ?",
            "dish": "For what is there nobody like {p} ?",
        },
    ),
    "distractors": Phrasing(
        statements={
            "home": "{p} once lived in {w} but has moved to {v} since .",
            "job": "{p} never was a {w} and earns money as a {v} .",
            "pet": "{p} gave away a {w} and now has a {v} .",
            "age": "{p} does not look {w} but turned {v} last week .",
            "dish": "{p} used to order {w} and today orders {v} .",
        },
        questions={
            "home": "To which city has {p} moved ?",
            "job": "As what does {p} earn money ?",
            "pet": "Which animal does {p} have now ?",
            "age": "What age did {p} turn ?",
            "dish": "What does {p} order today ?",
        },
    ),
    "telegrams": Phrasing(
        statements={
            "home": "{p} now {v} stop",
            "job": "{p} hired {v} stop",
            "pet": "{p} bought {v} stop",
            "age": "{p} birthday {v} stop",
            "dish": "{p} wants {v} stop",
        },
        questions={
            "home": "{p} now where",
            "job": "{p} hired what",
            "pet": "{p} bought what",
            "age": "{p} birthday which",
            "dish": "{p} wants what",
        },
    ),
    "talk": Phrasing(
        statements={
            "home": "my home is {v}",
            "job": "they pay me for being a {v}",
            "pet": "my {v} sleeps on my bed",
            "age": "I have seen {v} winters",
            "dish": "I could live on {v}",
        },
        questions={
            "home": "What did {p} call home ?",
            "job": "What did {p} say they are paid for being ?",
            "pet": "What did {p} say sleeps on the bed ?",
            "age": "How many winters did {p} speak of ?",
            "dish": "What did {p} say one could live on ?",
        },
        entry='{p} said : " {facts} . "',
        separator=" , and ",
    ),
}


@register("dataset", "tiny-qa")
def tiny_qa(
    folders: Sequence[Path] = (),
    *,
    train: int = 2000,  # number of questions to train on
    each: int = 600,  # number of other questions in each set
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """`train` questions on prose to train on, and `each` of prose and of the five other sets, never to be trained on.

    >>> data = tiny_qa(train=10, each=5)
    >>> print(*data.samples.x[0].split(" </s> "), data.samples.y[0], sep="\\n")
    Question: What does Tess work as ?
    Context: Leo lives in Kyoto . Tess is twenty years old . Tess works as a farmer .
    farmer
    >>> data.clusters
    ('prose', 'lists', 'reversed', 'distractors', 'telegrams', 'talk')
    """
    if train < 1 or each < 1:
        raise UserError(f"tiny-qa: train={train} and each={each}, but both must be 1 or more")
    root = Seed(seed).child("tiny-qa")
    items: list[TextRecord] = []
    for name in PHRASINGS:
        drawn = _distinct(name, root.child(name).numpy())
        # Test samples are drawn first, so that they do not depend on the number of training samples.
        held_out = [next(drawn) for _ in range(each)]
        training = [next(drawn) for _ in range(train)] if name == "prose" else []
        items += [TextRecord(*parts, f"{name}-{k}", name, train=True) for k, parts in enumerate(training, each)]
        items += [TextRecord(*parts, f"{name}-{k}", name, train=False) for k, parts in enumerate(held_out)]
    note = f"made up from seed {seed}: {train:,} questions on prose to train on, {each:,} held out in each set"
    return build_dataset("tiny-qa", items, notes=[note])


def _distinct(name: str, random: np.random.Generator) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield different questions of a set without end."""
    seen = set()
    while True:
        text, answers = _draw(PHRASINGS[name], random)
        if text not in seen:
            seen.add(text)
            yield text, answers


def _draw(phrasing: Phrasing, random: np.random.Generator) -> tuple[str, tuple[str, ...]]:
    """Draw two or three people with one or two facts each, all values different, and a question about one fact."""
    people = [PEOPLE[k] for k in random.permutation(len(PEOPLE))[: random.integers(2, 4)]]
    unused = {kind: [values[k] for k in random.permutation(len(values))] for kind, values in VALUES.items()}
    facts: list[tuple[str, str, str]] = []
    entries = []
    for person in people:
        kinds = [list(VALUES)[k] for k in random.permutation(len(VALUES))[: random.integers(1, 3)]]
        stated = [(person, kind, unused[kind].pop()) for kind in kinds]
        facts += stated
        texts = [phrasing.statements[kind].format(p=p, v=value, w=unused[kind].pop()) for p, kind, value in stated]
        entries.append(phrasing.entry.format(p=person, facts=phrasing.separator.join(texts)))
    person, kind, value = facts[random.integers(len(facts))]
    return join_question(phrasing.questions[kind].format(p=person), " ".join(entries)), _accepted(value)


def _accepted(value: str) -> tuple[str, ...]:
    """Return a value as in the context, then its other accepted forms.

    >>> _accepted("forty"), _accepted("tax clerk"), _accepted("cat")
    (('forty', '40'), ('tax clerk', 'clerk'), ('cat',))
    """
    if value in AGES:
        return value, str(AGES[value])
    return (value, value.split()[1]) if " " in value else (value,)
