"""Published numbers stand beside ours, are never mistaken for ours, and agree with the papers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driftline.published import numbers as published
from driftline.record.card import Component
from driftline.record.run import Record
from driftline.report.analysis import published as beside
from driftline.report.analysis.summary import answer

from ..conftest import render_results, results


@pytest.mark.parametrize(
    ("data", "protocol", "method", "metric", "stat", "value"),
    [
        ("yearbook", "Eval-Fix", "erm-all", "fix-id", "mean", 0.9799),
        ("yearbook", "Eval-Fix", "erm-all", "fix-ood", "mean", 0.7950),
        ("yearbook", "Eval-Fix", "swa", "fix-worst", "mean", 0.6790),
        ("fmow", "Eval-Fix", "si", "fix-ood", "mean", 0.4425),
        ("yearbook", "Eval-Stream", "moco-hat", "tas", "minimum", 0.893),
        ("yearbook", "Eval-Stream", "a-gem", "ood", "minimum", 0.565),
    ],
)
def test_numbers_are_those_of_the_papers(
    data: str, protocol: str, method: str, metric: str, stat: str, value: float
) -> None:
    found = published.lookup("timeline", data, protocol)
    assert [n.value for n in found if (n.method, n.metric, n.stat) == (method, metric, stat)] == [value]


def test_printed_rows_follow_our_own_and_never_win(make_record: Callable[..., Record]) -> None:
    record = make_record({"ft": [0.50, 0.60, 0.70]})
    for run in record.runs:
        run.card.data.name = "yearbook"
        run.card.protocol["protocol"] = "Eval-Stream"
    (table,) = results(record)
    lines = render_results([table], "md").splitlines()
    ours = next(k for k, line in enumerate(lines) if line.startswith("| ft |"))
    assert lines[ours + 1].startswith("| ft in temporal-metrics Table 2 | 92.4 |")
    assert "as published in that paper" in render_results([table], "md")
    assert "92.4" not in answer(table)
    assert "60.0" in answer(table)
    assert "temporal-metrics Table 2" in render_results([table], "latex")
    assert "not printed" in render_results([table], "csv")


@pytest.mark.parametrize(
    ("data", "protocol", "model", "method", "values"),
    [
        ("cifar10", "CLR", "conv-1", "baseline", [0.47]),
        ("cifar10", "CLR", "res-4", "oracle", [0.71]),
        ("cifar10", "RCL", "conv-2", "st-1", [0.58]),  # conv networks have a dash under ST-B
        ("cifar10", "RCL", "conv-2", "st-b", []),
        ("cifar10", "RCL", "res-4", "baseline", [0.53, 0.547]),  # Tables 9 and 15
        ("cifar10", "RCL", "res-4", "seq-ft(penalty=l2, from_initial=True)", [0.6644]),
        ("cifar10", "rrr", "dense-2", "oracle", [0.76]),
        ("cifar10", "TTT", "res-3", "i-ft", [0.70]),
        ("cifar100", "sss", "res-1", "seq-ewc", [0.60]),
        ("cifar100", "CLR", "res-1", "seq-ewc", []),
        ("yearbook", "time", "res-3", "seq-erm", [0.53]),
        ("yearbook", "time", "res-3", "oracle", []),
        ("cifar10", "rot8", "res-4", "jst-b", [0.41]),
        ("cifar10", "rot8", "res-3", "jst-b", []),
    ],
)
def test_cells_of_seq_to_final(data: str, protocol: str, model: str, method: str, values: list[float]) -> None:
    found = published.lookup("seq-to-final", data, protocol, model=model)
    assert [n.value for n in found if n.method == method] == values


def test_the_tables_of_seq_to_final_are_whole() -> None:
    """12 networks by 18 methods without the conv networks' -B, and on Portraits without the oracle."""
    sequences = [("cifar10", name) for name in ("CLR", "RCL", "rrr", "TTT")] + [("cifar100", "sss")]
    for data, name in sequences:
        found = [n for n in published.lookup("seq-to-final", data, name) if n.source != "Seq-to-Final Table 15"]
        assert len(found) == 12 * 18 - 4 * 3
    assert len(published.lookup("seq-to-final", "yearbook", "time")) == 12 * 17 - 4 * 3
    assert sum(len(published.lookup("seq-to-final", "cifar10", f"rot{n}")) for n in range(2, 9)) == 7 * 18


def test_means_of_cells_differ_from_the_printed_ones_where_the_paper_errs() -> None:
    """Table 9 prints .63 for ST-1, which is the mean of 8 networks; its 12 cells give .61. LP-FT's .64 is right."""

    def mean(method: str) -> float:
        found = published.lookup("seq-to-final", "cifar10", "RCL")
        cells = [n.value for n in found if (n.method, n.source) == (method, "Seq-to-Final Table 9")]
        return sum(cells) / len(cells)

    assert mean("st-1") == pytest.approx(0.6067, abs=1e-4)
    assert mean("st-b") == pytest.approx(0.63)
    assert round(mean("lp-ft"), 2) == 0.64


def test_a_model_finds_numbers_that_are_printed_for_all() -> None:
    every = published.lookup("timeline", "yearbook", "Eval-Fix")
    assert published.lookup("timeline", "yearbook", "Eval-Fix", model="yearbook-cnn") == every


@pytest.mark.parametrize(
    ("label", "printed"),
    [
        ("er", "er"),
        ("er(lr=0.002, replay_every=3)", "er(replay_every=3)"),
        ("er(replay_size=64)", "er(replay_size=64)"),
        ("mir(n_candidates=512, epochs=20)", "mir(n_candidates=512)"),
        ("mir+l2(penalty_weight=10.0)", "mir+l2"),
        ("er(replay_every=3) [lr=0.1]", "er(replay_every=3) [lr=0.1]"),
    ],
)
def test_settings_that_were_tuned_leave_a_method_what_it_is(label: str, printed: str) -> None:
    assert published.published_name("refinement", label) == printed


def test_the_tables_of_cmr_are_whole() -> None:
    """16 methods by 11 columns but for offline's five means, and gains of five methods in five streams."""
    usual = published.lookup("refinement", "qa", "alpha=0.9, beta=0.5, gamma=0.8")
    first = {(n.method, n.metric, n.stat): n.value for n in usual if n.source == "CMR Table 1"}
    assert len(first) == 16 * 11 - 5
    assert first["mir(replay_every=3)", "oec", "final"] == 0.6740
    assert first["mir+l2", "csr", "mean"] == 0.5980
    gains = {n.method: n.value for n in usual if n.source == "CMR Table 2"}
    frozen = first["frozen", "oec", "final"]
    for method, gain in gains.items():  # the first row of Table 2 is Table 1 with k = 3
        assert gain == pytest.approx(first[method, "oec", "final"] - frozen, abs=1e-9)
    assert len(gains) == 5


@pytest.mark.parametrize(
    ("protocol", "method", "source", "value"),
    [
        ("cin-c", "frozen", "RDumb Table 1", 0.18),
        ("cin-3dcc", "eata", "RDumb Table 1", 0.436),
        ("ccc easy", "slr", "RDumb Table 1", 0.222),
        ("ccc medium", "eta", "RDumb Table 1", 0.011),
        ("ccc hard", "cpl", "RDumb Table 1", 0.0014),
        ("holdout", "rdumb", "RDumb Table 4", 0.467),
        ("holdout", "rdumb(reset_every=1500)", "RDumb Table 4", 0.465),
        ("ccc", "eata(entropy_fraction=0.3)", "RDumb Table 5", 0.299),
        ("holdout", "eata(penalty_weight=100)", "RDumb Table 7", 0.471),
    ],
)
def test_numbers_of_rdumb(protocol: str, method: str, source: str, value: float) -> None:
    found = published.lookup("test-time", "imagenet-val", protocol, "resnet50")
    assert [n.value for n in found if (n.method, n.source) == (method, source)] == [value]


def test_the_mean_of_table_8_is_that_of_table_1() -> None:
    """Table 8 prints means over the three difficulties that Table 1 has one by one."""
    for method in ("eata", "rdumb"):
        of = [published.lookup("test-time", "imagenet-val", f"ccc {name}") for name in ("easy", "medium", "hard")]
        parts = [n.value for part in of for n in part if (n.method, n.source) == (method, "RDumb Table 1")]
        (mean,) = [n.value for n in published.lookup("test-time", "imagenet-val", "ccc") if n.method == method]
        assert mean == pytest.approx(sum(parts) / 3, abs=5e-4)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("tent(lr=0.001)", "tent"),
        ("rdumb(reset_every=10)", "rdumb(reset_every=10)"),
        ("rdumb(lr=0.1, reset_every=125)", "rdumb(reset_every=125)"),
    ],
)
def test_a_learning_rate_leaves_an_adapting_method_what_it_is(label: str, name: str) -> None:
    assert published.published_name("test-time", label) == name


@pytest.mark.parametrize(
    ("files", "printed"),
    [
        (None, True),
        (["mrqa/train/SQuAD.jsonl.gz", "mrqa/dev/NewsQA.jsonl.gz"], True),
        ("qa/cmr_qa_upstream_eval.jsonl.gz", True),
        (["mrqa/train/SQuAD.jsonl.gz", "tickets.jsonl"], False),
        ("tickets.jsonl", False),
    ],
)
def test_questions_of_a_users_own_have_no_printed_row(
    make_record: Callable[..., Record], files: str | list[str] | None, printed: bool
) -> None:
    card = make_record({"cft": [0.5]}).runs[0].card
    card.run.benchmark, card.run.data = "refinement", Component(name="qa", settings={"files": files})
    card.data.name, card.protocol["protocol"] = "qa", "alpha=0.9, beta=0.5, gamma=0.8"
    assert bool(beside.published_values(card, "cft")) == printed


def test_class_folders_are_those_of_ned_at_its_full_scale_alone(make_record: Callable[..., Record]) -> None:
    card = make_record({"ncm": [0.5]}).runs[0].card
    options = {"classes": 1000, "pretrain": 250, "class_size_law": "25000/(25+r)"}
    card.run.benchmark, card.run.data = "open-world", Component(name="image-folders", settings={"path": "x"})
    card.run.options = options
    assert beside.numbers(card, "imagenet-22k", "sequence 5", "resnet18")
    card.run.options = {**options, "classes": 20}
    assert not beside.numbers(card, "imagenet-22k", "sequence 5", "resnet18")
