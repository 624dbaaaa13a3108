"""YAML from outside is data of bounded size, and what is wrong with it is a sentence."""

from itertools import pairwise

import pytest

from driftline import spec
from driftline.errors import UserError
from driftline.io import safe_yaml

LEVELS = "abcdefghij"
ALIASES = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(8 * [f'*{old}'])}]\n" for old, new in pairwise(LEVELS)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join(8 * [f'*{old}'])}]}}\n" for old, new in pairwise(LEVELS)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ALIASES, "aliases that stand for more than 1,000,000 items"),
        (MERGES, "aliases that stand for more than 1,000,000 items"),
        ("a: &a [*a]", "contains itself"),
        ("[" * 1000 + "]" * 1000, "nested too deeply"),
        ("seeds: " + "9" * 5000, "a number of 5,000 characters"),
        ("seeds: " + ":".join(["1"] * 1000), "a number of 1,999 characters"),
        ("a: 2020-99-99", "month must be in"),
        ("a: !!bool perhaps", "perhaps"),
        ("a: !!timestamp soon", "NoneType"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
        (r'a: "\ud800"', "surrogates not allowed"),
        ("a: \0", "special characters are not allowed"),
        ("a: [", "expected the node content"),
        ("#" * 1_000_001, "more than 1,000,000 characters"),
    ],
    ids=lambda value: value[:30],
)
def test_texts_that_are_refused(tmp_path, text, reason):
    with pytest.raises(ValueError, match=reason):
        safe_yaml.load(text)
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=rf"a\.yaml is not YAML: .*{reason}"):
        spec.read(tmp_path / "a.yaml")


def test_aliases_of_reasonable_size_are_kept():
    assert safe_yaml.load("a: &a {lr: 1}\nb: {<<: *a, wd: 2}\nc: [*a, *a]") == {
        "a": {"lr": 1},
        "b": {"lr": 1, "wd": 2},
        "c": [{"lr": 1}, {"lr": 1}],
    }
    assert safe_yaml.load("") is None


def test_a_number_of_seeds_is_bounded():
    given = {"benchmark": "timeline", "data": "digits", "methods": ["erm"]}
    assert spec.parse({**given, "seeds": 3}).seeds == (0, 1, 2)
    for extra in ({"seeds": 10**9}, {"selection": {"grid": {"lr": [1]}, "seeds": 10**9}}):
        with pytest.raises(UserError, match="seeds: at most 100,000"):
            spec.parse({**given, **extra})


def test_seeds_of_other_kinds_are_refused_in_a_sentence():
    given = {"benchmark": "timeline", "data": "digits", "methods": ["erm"]}
    for seeds in ([0, "a"], [[0]], [{}]):
        with pytest.raises(UserError, match=r"selection\.seeds"):
            spec.parse({**given, "selection": {"grid": {"lr": [1]}, "seeds": seeds}})


def test_a_setting_nested_too_deeply_is_a_text():
    given = {"benchmark": "timeline", "data": "digits", "methods": ["erm"]}
    assert spec.apply_overrides(given, ["data.periods=" + "[" * 100_000])["data"]["periods"] == "[" * 100_000
