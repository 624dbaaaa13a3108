"""The committed results, the catalog and docs/ledger.md agree."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from driftline import recipes, registry
from driftline.ledger.catalog import papers
from driftline.ledger.compare import pairs
from driftline.ledger.page import write_page
from driftline.ledger.results import read_results
from driftline.published.numbers import from_source

ROOT = Path(__file__).parents[2]
RESULTS = read_results(ROOT / "results")
ITEMS = [item for paper in papers() for item in paper.items]
COMPARISONS = [comparison for item in ITEMS for comparison in item.comparisons]
assert COMPARISONS


def test_the_page_is_what_the_command_makes_from_the_results() -> None:
    text = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert text == write_page(papers(), RESULTS), "run `driftline ledger`"


def test_our_numbers_are_means_over_the_seeds_in_the_files() -> None:
    """Read without the package's own reader."""
    checked = 0
    for comparison in COMPARISONS:
        for pair in pairs(comparison, RESULTS):
            table = pd.read_csv(ROOT / "results" / comparison.result / "scores.csv", keep_default_na=False)
            metric, _, stat = comparison.instead.get(
                f"{pair.metric}:{pair.stat}", f"{pair.metric}:{pair.stat}"
            ).partition(":")
            rows = table[(table["method"] == pair.method) & (table["metric"] == metric) & (table["stat"] == stat)]
            rows = rows[rows["setting"].str.contains(comparison.setting, regex=False)]
            assert pair.ours.seeds == len(rows) > 0
            assert pair.ours.value == pytest.approx(rows["value"].astype(float).mean())
            checked += 1
    assert checked > 50


def test_printed_numbers_of_the_page_are_published_ones() -> None:
    for comparison in COMPARISONS:
        published = {number.value for number in from_source(comparison.source)}
        assert {pair.printed for pair in pairs(comparison, RESULTS) if pair.printed is not None} <= published


def test_every_metric_of_a_comparison_is_in_its_result() -> None:
    for comparison in COMPARISONS:
        found = {f"{pair.metric}:{pair.stat}" for pair in pairs(comparison, RESULTS)}
        assert comparison.result not in RESULTS or found == set(comparison.metrics), comparison


def test_the_catalog_has_every_table_and_figure_once() -> None:
    names = [item.id for item in ITEMS]
    assert len(set(names)) == len(names)
    assert Counter(item.kind for item in ITEMS) == {"table": 38, "figure": 43}
    for paper in papers():
        numbers = [re.fullmatch(r"[A-Z]{2}-([TF])(\d+)", item.id) for item in paper.items]
        for kind in "TF":
            found = [int(number[2]) for number in numbers if number and number[1] == kind]
            assert found == list(range(1, len(found) + 1)), f"{paper.name}, {kind}"


def test_commands_for_figures_exist() -> None:
    for item in ITEMS:
        named = re.findall(r"`driftline figure ([a-z-]+)[^`]*`", item.reason)
        assert set(named) <= set(registry.names("figure")), item.id
        assert named or item.status != "drawn", item.id


WAITING = {
    "refinement/news.cpu",
    "test-time/cifar10.cpu",
    "test-time/imagenet-val.cpu",
}
"""Small recipes that were not run yet."""


def test_every_small_recipe_was_run() -> None:
    small = {name for name in recipes.names() if name.endswith(".cpu")}
    assert small - set(RESULTS) == WAITING


def test_the_catalog_names_sources_metrics_and_recipes_that_exist() -> None:
    for comparison in COMPARISONS:
        assert not comparison.source or from_source(comparison.source), comparison.source
        if comparison.result.endswith((".cpu", ".full")):
            assert recipes.path_of(f"recipe:{comparison.result}").exists()
            labels = [comparison.instead.get(label, label) for label in comparison.metrics]
            assert {label.partition(":")[0] for label in labels} <= set(registry.names("metric"))


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_used_and_says_how_it_was_made(name: str) -> None:
    result = RESULTS[name]
    assert name in {used.result for item in ITEMS for used in (*item.comparisons, *item.findings)}
    assert result.header.command
    assert result.header.note
    if result.header.recipe:
        assert recipes.path_of(f"recipe:{result.header.recipe}").exists()
        assert result.card["shared"]["code"]["driftline"] == result.header.version
