"""Queries and headlines in sets that share their classes, from small files and from the real ones."""

import json

import numpy as np
import pytest

from driftline.data import load
from driftline.data.text_clusters import DOMAIN_OF, DOMAINS, SECTIONS, divide_intents
from driftline.errors import UserError


def intents_file(folder, change=lambda content: None):
    """Three intents of every domain, with four queries each to train on and one for validation and test."""
    few = [intent for names in DOMAINS.values() for intent in names.split()[:3]]
    content = {
        part: [[f"{intent} {part} {k}", intent] for intent in few for k in range(n)]
        for part, n in (("train", 4), ("val", 1), ("test", 1))
    }
    change(content)
    (folder / "data_full.json").write_text(json.dumps({**content, "oos_train": [["what ?", "oos"]]}))
    return [folder]


def news_file(folder, sections=None, years=(2018, 2019)):
    """Three headlines of every section in every year."""
    sections = sections or [name for sets in SECTIONS.values() for names in sets for name in names]
    lines = [
        json.dumps({"date": f"{year}-02-0{k + 1}", "category": name, "headline": f"{name} {year} {k}"})
        for year in years
        for name in [*sections, "FIFTY"]
        for k in range(3)
    ]
    (folder / "News_Category_Dataset_v3.json").write_text("\n".join(lines))
    return [folder]


def test_the_table_is_ten_domains_of_fifteen_intents():
    assert len(DOMAIN_OF) == 150
    assert np.bincount(list(DOMAIN_OF.values())).tolist() == [15] * 10


def test_intents_are_divided_and_domains_are_shared(tmp_path):
    data = load("intent-clusters", {"upstream": 1, "clusters": 2}, intents_file(tmp_path))
    s = data.samples
    assert np.bincount(s.group).tolist() == [60, 60, 60]
    for k in range(3):
        assert np.bincount(s.y[s.group == k]).tolist() == [6] * 10
    intent = np.array([text.split()[0] for text in s.x])
    assert s.y.tolist() == [DOMAIN_OF[name] for name in intent]
    homes = {name: set(s.group[intent == name].tolist()) for name in intent}
    assert all(len(groups) == 1 for groups in homes.values())  # an intent is in one set alone
    assert data.clusters == ("upstream intents", "intents 1", "intents 2")
    is_test = np.array(["train" not in text for text in s.x])
    np.testing.assert_array_equal(data.test, is_test & (s.group == 0))
    assert s.id[:2].tolist() == ["train-1", "train-2"]
    assert "intents 1: " in data.notes[2]


def test_another_seed_is_another_division():
    sets = [divide_intents(list(DOMAIN_OF), 5, 5, seed) for seed in (0, 0, 1)]
    assert sets[0] == sets[1] != sets[2]
    assert sorted(intent for intents in sets[2] for intent in intents) == sorted(DOMAIN_OF)
    assert [len(intents) for intents in sets[2]] == [50, 20, 20, 20, 20, 20]
    assert divide_intents(list(DOMAIN_OF)[::-1], 5, 5) == sets[0]  # whatever the order in the file


def test_a_query_that_came_before_is_left_out(tmp_path):
    def repeat(content):
        content["test"][0][0] = content["train"][0][0]

    data = load("intent-clusters", {"upstream": 1, "clusters": 2}, intents_file(tmp_path, repeat))
    assert len(data.samples) == 179
    assert "test-1" not in data.samples.id
    assert data.notes[-1] == "1 queries that came before are left out"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["val"].append(["hm", "sing"]), "'sing' as the intent in entry 31 of val, which is in none"),
        (lambda c: c["val"].append([7, "apr"]), "7 as the query in entry 31 of val"),
        (lambda c: c["train"].append(["hm"]), "expected CLINC150"),
        (lambda c: c.pop("test"), "expected CLINC150.*no 'test'"),
        (lambda c: [part.clear() for part in c.values()], "has no queries"),
    ],
)
def test_what_is_wrong_with_a_file_of_intents_is_said(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        load("intent-clusters", {"upstream": 1, "clusters": 2}, intents_file(tmp_path, change))


def test_too_few_intents_and_no_file(tmp_path):
    with pytest.raises(UserError, match="oos-eval"):
        load("intent-clusters", folders=[tmp_path])
    folders = intents_file(tmp_path)
    with pytest.raises(
        UserError, match=r"'banking' has 3 intents, too few for upstream=2 and one in each of clusters=2"
    ):
        load("intent-clusters", {"upstream": 2, "clusters": 2}, folders)
    with pytest.raises(UserError, match="upstream=0"):
        load("intent-clusters", {"upstream": 0}, folders)


def test_sections_of_news_are_sets_with_the_same_classes(tmp_path):
    data = load("news-clusters", folders=news_file(tmp_path))
    s = data.samples
    assert data.task.classes == tuple(SECTIONS)
    assert data.test is None
    place = {n.lower(): (k, g) for k, sets in enumerate(SECTIONS.values()) for g, ns in enumerate(sets) for n in ns}
    assert len(s) == 2 * 3 * len(place)  # FIFTY is in no class
    found = [place[text.rsplit(" ", 2)[0]] for text in s.x]
    assert [(int(y), int(g)) for y, g in zip(s.y, s.group, strict=True)] == found
    assert {tuple(np.unique(s.y[s.group == g])) for g in range(4)} == {(0, 1, 2, 3, 4)}


def test_years_of_news_are_sets(tmp_path):
    folders = news_file(tmp_path, years=(2018, 2020, 2021, 2030))
    data = load("news-clusters", {"by": "years", "max_per_section": 2}, folders)
    s = data.samples
    assert data.clusters == ("2018", "2020", "2021")
    assert s.group.tolist() == [("2018", "2020", "2021").index(text.split()[-2]) for text in s.x]
    sections = sum(len(names) for sets in SECTIONS.values() for names in sets)
    assert np.bincount(s.group).tolist() == [2 * sections] * 3
    assert data.notes[0].endswith("at most 2 of a section in a set")


def test_most_headlines_are_drawn_by_seed(tmp_path):
    folders = news_file(tmp_path)
    one, same, other = (load("news-clusters", {"max_per_section": 2, "seed": k}, folders) for k in (0, 0, 1))
    everything = load("news-clusters", {"max_per_section": None}, folders)
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert set(one.samples.id) < set(everything.samples.id)
    assert len(everything.samples) == 3 * len(one.samples)


def test_what_is_wrong_with_news_is_said(tmp_path):
    folders = news_file(tmp_path)
    with pytest.raises(UserError, match="Did you mean 'years'"):
        load("news-clusters", {"by": "year"}, folders)
    with pytest.raises(UserError, match="max_per_section=0"):
        load("news-clusters", {"max_per_section": 0}, folders)
    few = [name for names in SECTIONS["affairs"] for name in names]
    with pytest.raises(UserError, match="no upstream headline of the class 'culture'"):
        load("news-clusters", folders=news_file(tmp_path, few))
    with pytest.raises(UserError, match="no headline for the set 'sections 3'"):
        load("news-clusters", folders=news_file(tmp_path, few[:-1]))


def real(name, folders, **options):
    try:
        return load(name, options, folders)
    except UserError as error:
        if "not found" not in str(error):
            raise
        pytest.skip(str(error))


def test_the_real_intents(real_data):
    data = real("intent-clusters", real_data)
    assert np.bincount(data.samples.group).tolist() == [7499, 2999, 2999, 3000, 2999, 2999]  # 5 occur twice
    assert int(data.test.sum()) == 2499
    assert {"what expression would i use to say i love you if i were an italian"} <= set(data.samples.x)


def test_the_real_news(real_data):
    data = real("news-clusters", real_data)
    if "10,000" not in data.notes[0]:
        pytest.skip("this is another file than the 10,000 newest headlines")
    assert np.bincount(data.samples.group).tolist() == [2502, 1645, 1563, 756]
    assert np.bincount(data.samples.y[data.samples.group == 3]).tolist() == [193, 305, 167, 38, 53]
    years = real("news-clusters", real_data, by="years")
    assert years.clusters == ("2018", "2019", "2020", "2021", "2022")
    assert np.bincount(years.samples.group).tolist() == [2444, 2004, 2053, 2066, 1398]
