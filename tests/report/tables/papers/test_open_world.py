"""The tables of NED: every number, mark and printed line by hand; printed cells that cannot be right stand apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.errors import UserError
from driftline.published import numbers as published
from driftline.record.run import Record
from driftline.report.tables.model import Table
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.render import render

from ...conftest import heads
from ...opened import opened

SOURCE = "NED Table 1 (ImageNet, ResNet-18)"
SHARES = {
    **{"novel-head": 0.4, "pretrain-head": 0.7, "novel-tail": 0.3, "pretrain-tail": 0.6},
    **{"mean-class": 0.45, "overall": 0.5},
}


def numbers(grid: Table) -> dict[str, list[float | None]]:
    return {line.title: [entry and round(entry.estimate.value, 6) for entry in line.cells] for line in grid.rows}


def shares(more: float = 0.0, **changes: float) -> dict[str, float]:
    return {name: value + more for name, value in {**SHARES, **changes}.items()}


def test_table_1_in_markdown(tmp_path: Path) -> None:
    runs = [
        opened(tmp_path, "exemplar-tuning", 0, shares()),
        opened(tmp_path, "ncm", 0, shares(0.1)),
        opened(tmp_path, "mine", 0, {"overall": 0.2}),
    ]
    lines = render(paper_tables(Record(runs), "open-world/table-1"), "md").splitlines()
    assert lines[2] == "| method | novel head | pretrain head | novel tail | pretrain tail | mean class | overall |"
    assert lines[4].startswith("| ncm | 50.0 [40.0, 60.0] | 80.0 [70.0, 90.0] |")
    assert lines[5] == f"| ncm in {SOURCE} | 42.4 | 72.7 | 31.7 | 56.2 | 43.4 | 48.6 |"
    assert (
        lines[7] == f"| exemplar-tuning in {SOURCE} | 48.9 | 75.7 | – | 45.7 | 43.6 | 58.2 |"
    )  # its novel tail is wrong
    assert lines[8] == "| exemplar-tuning in NED Table 1, doubtful (ImageNet, ResNet-18) | – | – | 27.9 | – | – | – |"
    assert lines[9] == "| mine | – | – | – | – | – | 20.0 [10.0, 30.0] |"
    assert any("more than 2 samples" in line for line in lines)


def test_table_1_marks_and_order(tmp_path: Path) -> None:
    values = {"lwf": [0.30, 0.35, 0.31], "fine-tune": [0.50, 0.55, 0.51], "ncm": [0.49, 0.56, 0.52]}
    runs = [opened(tmp_path, label, seed, {"overall": v}) for label, vs in values.items() for seed, v in enumerate(vs)]
    grid, _ = paper_tables(Record(runs), "open-world/table-1")
    ours = [line for line in grid.rows if not line.source]
    assert [line.name for line in ours] == ["fine-tune", "ncm", "lwf"]
    assert [line.cells[-1] and line.cells[-1].highlight.bold for line in ours] == [True, True, False]
    lwf = numbers(grid)[f"lwf in {SOURCE}"]
    assert lwf == [None, None, None, None, None, 0.4876]  # its sections and mean cannot all be right


def test_table_1_compute(tmp_path: Path) -> None:
    runs = [
        opened(tmp_path, "fine-tune(lr=0.01)", seed, shares(), compute=(2e9 + seed * 1e9, 1e9, 4e9)) for seed in (0, 1)
    ]
    _, grid = paper_tables(Record(runs), "open-world/table-1")
    assert heads(grid) == ("cached", "uncached")
    assert numbers(grid) == {
        "fine-tune(lr=0.01)": [3.5, 7.5],
        f"fine-tune(lr=0.01) in {SOURCE}": [0.16e6, 5.73e6],
    }
    assert grid.rows[0].cells[0] is not None
    assert grid.rows[0].cells[0].estimate.seeds == 2


def test_table_1_of_other_networks(tmp_path: Path) -> None:
    large = [opened(tmp_path / "a", "fine-tune", 0, shares(), model="resnet50")]
    grid, _ = paper_tables(Record(large), "open-world/table-1")
    assert numbers(grid)["fine-tune in NED Table 4 (ImageNet, ResNet-50)"][-1] == 0.5795
    small = [opened(tmp_path / "b", "maml", 0, shares()), opened(tmp_path / "b", "prototypical", 0, shares())]
    grid, _ = paper_tables(Record(small), "open-world/table-1")
    found = numbers(grid)
    assert found["maml in NED Table 1 (ImageNet, Conv-4)"] == [None, None, 0.0015, 0.001, 0.011, 0.0364]
    assert found[f"prototypical in {SOURCE}"][-1] == 0.1114
    theirs = [opened(tmp_path / "c", "ncm(pretraining=moco)", 0, shares(), data="imagenet-22k")]
    grid, _ = paper_tables(Record(theirs), "open-world/table-1")
    assert numbers(grid)["ncm(pretraining=moco) in NED Table 1 (full scale)"][-1] == 0.229
    theirs[0].card.run.options.update(classes=1000, pretrain=250, class_size_law="25000/(25+r)")
    grid, _ = paper_tables(Record(theirs), "open-world/table-1")
    assert numbers(grid)["ncm(pretraining=moco) in NED Table 1"][-1] == 0.229


def test_another_similarity_is_not_the_printed_method(tmp_path: Path) -> None:
    grid, _ = paper_tables(Record([opened(tmp_path, "exemplar-tuning(scale=2.0)", 0, shares())]), "open-world/table-1")
    assert list(numbers(grid)) == ["exemplar-tuning(scale=2.0)"]


def test_table_3_goes_by_depth(tmp_path: Path) -> None:
    runs = [
        opened(tmp_path, name, 0, shares(), settings={"n_layers": layers})
        for name, layers in (("fine-tune(n_layers=10)", 10), ("fine-tune(n_layers=2)", 2), ("fine-tune", 1))
    ]
    (grid,) = paper_tables(Record([*runs, opened(tmp_path, "ncm", 0, shares())]), "open-world/table-3")
    assert [line.name for line in grid.rows if not line.source] == [
        *("fine-tune", "fine-tune(n_layers=2)", "fine-tune(n_layers=10)")
    ]
    found = numbers(grid)
    assert found["fine-tune in NED Table 3 (ImageNet, ResNet-18)"][-1] == 0.5687
    assert found["fine-tune(n_layers=2) in NED Table 3 (ImageNet, ResNet-18)"][-1] == 0.5723  # its third row
    with pytest.raises(UserError, match="no run of open-world with fine-tune"):
        paper_tables(Record([opened(tmp_path, "ncm", 1, shares())]), "open-world/table-3")


def test_table_6_has_episodes_beside_the_stream(tmp_path: Path) -> None:
    row = ("episodic", "each", "5-shot 5-way", None, 0.6, 0.5, 0.7, 600, "episodes")
    runs = [opened(tmp_path, "prototypical", 0, {"overall": 0.2}, rows=[row]), opened(tmp_path, "ncm", 0, shares())]
    (grid,) = paper_tables(Record(runs), "open-world/table-6")
    assert heads(grid) == ("5-shot 5-way", "overall")
    assert numbers(grid) == {
        "prototypical": [0.6, 0.2],
        "prototypical in NED Table 6 (trained on MiniImageNet)": [0.692, 0.1436],
        "prototypical in NED Table 6 (trained on ImageNet-1K)": [0.427, 0.1598],
        "prototypical in Snell et al. in NED Table 6": [0.682, None],
    }
    with pytest.raises(UserError, match="episodes"):
        paper_tables(Record(runs[1:]), "open-world/table-6")


def test_table_7_never_without_the_clock(tmp_path: Path) -> None:
    mine = {"unseen-auroc-hg": 0.5, "unseen-auroc-mdt": 0.98, "matched-auroc-mdt": 0.71, "best-f1-mdt": 0.4}
    clock = {"clock-auroc": 0.984, "clock-f1": 0.43}
    runs = [opened(tmp_path, "ncm", 0, {**mine, **clock}), opened(tmp_path, "mine", 0, clock)]
    (grid,) = paper_tables(Record(runs), "open-world/table-7")
    assert heads(grid) == ("AUROC HG", "AUROC MDT", "AUROC clock", "matched MDT", "F1 MDT", "F1 clock")
    assert numbers(grid) == {
        "ncm": [0.5, 0.98, 0.984, 0.71, 0.4, 0.43],
        "ncm in NED Table 7 (ImageNet, ResNet-18)": [None, 0.85, None, None, 0.2, None],
        "ncm in NED Table 7, doubtful (ImageNet, ResNet-18)": [0.07, None, None, None, None, None],
        "mine": [None, None, 0.984, None, None, 0.43],
    }
    assert any("looks at no sample" in note for note in grid.notes)
    with pytest.raises(UserError, match="detection of new classes"):
        paper_tables(Record([opened(tmp_path, "ncm", 1, shares())]), "open-world/table-7")


def test_table_8(tmp_path: Path) -> None:
    runs = [
        opened(tmp_path, "weight-imprinting(scale=8.0)", 0, shares(), settings={"scale": 8.0}),
        opened(tmp_path, "weight-imprinting", 0, shares(), settings={"scale": 4.0}),
        opened(tmp_path, "exemplar-tuning(similarity=euclidean)", 0, shares(), settings={"similarity": "euclidean"}),
        opened(tmp_path, "exemplar-tuning(similarity=cosine)", 0, shares(), settings={"similarity": "cosine"}),
    ]
    (grid,) = paper_tables(Record(runs), "open-world/table-8")
    assert [line.name for line in grid.rows if not line.source] == [
        *("weight-imprinting", "weight-imprinting(scale=8.0)"),
        *("exemplar-tuning(similarity=cosine)", "exemplar-tuning(similarity=euclidean)"),
    ]
    theirs = [line for line in grid.rows if line.source and "doubtful" not in line.source]
    found = [[entry and entry.estimate.value for entry in line.cells] for line in theirs]
    assert found[0] == [0.4032, 0.6746, 0.1535, 0.3418, 0.3269, 0.4851]
    assert found[1] == [None, None, None, None, 0.3256, 0.4667]
    assert found[2] == [None, None, None, None, 0.1172, 0.3181]
    assert found[3][:2] == [0.434, 0.6632]


def test_table_3_has_both_printed_rows_of_one_layer(tmp_path: Path) -> None:
    (grid,) = paper_tables(
        Record([opened(tmp_path, "fine-tune", 0, shares(), settings={"n_layers": 1})]), "open-world/table-3"
    )
    assert [line.source for line in grid.rows[1:]] == [
        *("NED Table 3 (ImageNet, ResNet-18)", "NED Table 3 (layers=2) (ImageNet, ResNet-18)")
    ]
    assert [line.cells[-1] and line.cells[-1].estimate.value for line in grid.rows] == [0.5, 0.5687, 0.5679]


def test_table_2_counts_samples(tmp_path: Path) -> None:
    runs = [opened(tmp_path, "ncm", seed, shares()) for seed in (0, 1)]
    for run, number, counts in zip(runs, (3, 6), ([5, 1, 2, 0], [400, 7, 93, 0]), strict=True):
        run.card.protocol.update(sequence=number, counts=counts, samples=sum(counts))  # the last class is not in it
    (grid,) = paper_tables(Record(runs), "open-world/table-2")
    found = numbers(grid)
    assert [line.title for line in grid.rows if not line.source] == ["sequence 3", "sequence 6"]
    assert found["sequence 3"] == [8, 1, 5]
    assert found["sequence 6"] == [500, 7, 400]
    assert found["sequence 3 in NED Table 2 (full scale)"] == [90133, 14, 961]
    assert found["sequence 1 in NED Table 2 (full scale)"] == [89030, None, 961]
    assert found["sequence 1 in NED Table 2, doubtful (full scale)"] == [None, 1, None]
    assert "| sequence 3 in NED Table 2 (full scale) | 90,133 | 14 | 961 |" in render([grid], "md")
    with pytest.raises(UserError, match="says how many samples its classes have"):
        paper_tables(Record([opened(tmp_path, "ncm", 2, shares())]), "open-world/table-2")


def test_table_5_has_deviations_over_sequences(tmp_path: Path) -> None:
    runs = [opened(tmp_path, "ncm", seed, {"overall": value}) for seed, value in enumerate((0.4, 0.5, 0.9))]
    runs += [opened(tmp_path, "oltr", 0, {"overall": 0.3})]
    (grid,) = paper_tables(Record(runs), "open-world/table-5")
    found = numbers(grid)
    assert list(found) == [
        "oltr",
        "oltr in NED Table 5, doubtful (ImageNet, ResNet-18)",
        "oltr, std in NED Table 5, doubtful (ImageNet, ResNet-18)",
        "ncm",
        "ncm, std",
        "ncm in NED Table 5 (ImageNet, ResNet-18)",
        "ncm, std in NED Table 5 (ImageNet, ResNet-18)",
    ]
    assert found["ncm"][-1] == 0.6
    assert found["ncm, std"] == [*[None] * 5, 0.264575]  # the root of (.04 + .01 + .09) / 2
    assert found["ncm in NED Table 5 (ImageNet, ResNet-18)"][-1] == 0.4789
    assert found["ncm, std in NED Table 5 (ImageNet, ResNet-18)"][-1] == 0.0076
    large = [opened(tmp_path / "large", "ncm", 0, shares(), model="resnet50")]
    (grid,) = paper_tables(Record(large), "open-world/table-5")
    assert numbers(grid)["ncm in NED Table 5 (ImageNet, ResNet-50)"][-1] == 0.5222


def test_a_network_that_was_printed_has_its_own_numbers(tmp_path: Path) -> None:
    grid, _ = paper_tables(
        Record([opened(tmp_path, "prototypical", 0, shares(), model="conv-4")]), "open-world/table-1"
    )
    assert numbers(grid)["prototypical in NED Table 1 (ImageNet, Conv-4)"][0] == 0.1163


def test_no_runs_no_table() -> None:
    with pytest.raises(UserError, match="no run of open-world"):
        paper_tables(Record([]), "open-world/table-1")


def printed(table: int, protocol: str = "sequence 5", model: str = "resnet18") -> dict[tuple[str, str, str], float]:
    found = published.lookup("open-world", "imagenet-22k", protocol, model)
    return {(n.method, n.metric, n.stat): n.value for n in found if n.source == f"NED Table {table}"}


def test_printed_numbers() -> None:
    first = printed(1)
    assert first["fine-tune", "novel-head", "mean"] == 0.4341
    assert first["exemplar-tuning(pretraining=moco)", "overall", "mean"] == 0.3961
    assert first["standard-training", "macs", "final"] == pytest.approx(11.29e15)
    fifth = printed(5, "sequences 3 to 5")
    assert (fifth["ncm", "overall", "mean"], fifth["ncm", "overall", "std"]) == (0.4789, 0.0076)
    assert printed(7)["exemplar-tuning", "unseen-auroc-mdt", "mean"] == 0.92
    lengths = [published.lookup("open-world", "imagenet-22k", f"sequence {k}") for k in range(1, 6)]
    assert [n.value for part in lengths for n in part if n.metric == "samples"] == [89030, 87549, 90133, 86988, 89921]


SIZES = {"novel-head": 357, "pretrain-head": 108, "novel-tail": 385, "pretrain-tail": 140}


@pytest.mark.parametrize(("table", "model"), [(1, "resnet18"), (1, "conv-4"), (4, "resnet50"), (8, "resnet18")])
def test_printed_sections_and_means_agree_unless_they_are_doubtful(table: int, model: str) -> None:
    """Sections weighted with S5's class counts leave 10 classes of exactly 50 samples: at most 1 point of the mean."""
    cells = printed(table, model=model)
    whole = [m for m, metric, _ in cells if metric == "mean-class" and all((m, s, "mean") in cells for s in SIZES)]
    for method in whole:
        least = sum(n * cells[method, name, "mean"] for name, n in SIZES.items()) / 1000
        assert least - 1e-4 <= cells[method, "mean-class", "mean"] <= least + 0.01 + 1e-4, method
    assert len(whole) >= (0 if model == "conv-4" else 2)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("fine-tune(lr=0.01, train_every=500)", "fine-tune"),
        ("fine-tune(lr=30.0, pretraining=moco)", "fine-tune(pretraining=moco)"),
        ("weight-imprinting(imprint_only_labels=500)", "weight-imprinting"),
        ("lwf(temperature=3)", "lwf(temperature=3)"),
        ("maml(train_every=50, pretraining={'name': 'maml', 'query': 5})", "maml"),
        ("prototypical(pretraining={'name': 'prototypes', 'query': 5})", "prototypical"),
        ("ncm(pretraining={'name': 'moco', 'updates': 9})", "ncm(pretraining=moco)"),
        ("prototypical(pretraining={'name': 'maml', 'query': 5})", "prototypical(pretraining=maml)"),
    ],
)
def test_a_schedule_leaves_a_method_what_it_is(label: str, name: str) -> None:
    assert published.published_name("open-world", label) == name
