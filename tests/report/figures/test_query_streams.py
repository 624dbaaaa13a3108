"""What the figures of a stream show, with every number worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftline.data import locate
from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.composition import of_file, of_group
from driftline.report.analysis.groups import groups
from driftline.report.figures.base import draw
from driftline.report.figures.export import save
from driftline.report.page.page import page
from driftline.streams.refinement import episode_counts

from ..conftest import at, final, refined, table_of

T1 = 12.706204736  # the 97.5% point of Student's t with one degree of freedom
ANSWERS = {
    "frozen": [["x", "x"], ["x", "b"], ["a", "b"], ["a", "b"]],
    "cft": [["x", "x"], ["x", "c"], ["x", "b"], ["x", "x"]],
    "er": [["x", "x"], ["x", "c"], ["x", "x"], ["x", "b"]],
}
OEC = {"frozen": [0.40, 0.50], "cft": [0.50, 0.70], "er": [0.60, 0.70]}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Three methods, two seeds; the second seed of er answers as in the first but for the last query."""
    runs = []
    for method, answers in ANSWERS.items():
        for seed in (0, 1):
            scores = [final("oec", OEC[method][seed]), *at("oec", t2=OEC[method][seed], t4=OEC[method][seed] + 0.1)]
            given = answers if (method, seed) != ("er", 1) else [*answers[:3], ["x", "x"]]
            runs.append(refined(tmp_path, method, seed, [*scores, *at("csr", t1=1.0)], given))
    return Record(runs)


def of(record: Record, *methods: str) -> Record:
    return Record(run for run in record.runs if run.method in methods)


def test_queries_and_errors_by_cluster(record: Record) -> None:
    frame = table_of("composition", record)
    assert frame["panel"].unique().tolist() == ["refinement · digit-clusters · mlp, stream 0"]
    counts = {name: rows[["time", "part", "count"]].to_numpy().tolist() for name, rows in frame.groupby("stream")}
    assert counts["queries"] == [  # as the card has them: two upstream, then one of each, then two odd ones
        ["1", "upstream", 2],
        ["2", "upstream", 1],
        ["2", "odd", 1],
        ["3", "odd", 2],
        ["4", "odd", 2],
    ]
    assert counts["errors of the upstream model"] == [
        ["2", "odd", 1],
        ["3", "upstream", 1],
        ["3", "odd", 1],
        ["4", "upstream", 1],
        ["4", "odd", 1],
    ]
    (group,) = groups(of(record, "frozen"))
    found = of_group(group)
    assert found is not None
    assert found.satisfaction.tolist() == [1.0, 0.75, 0.5, 0.375]


def test_without_the_upstream_model_its_errors_are_not_known(record: Record, full_record: Record) -> None:
    frame = table_of("composition", Record([*of(record, "er").runs, *full_record.runs]))
    assert frame["stream"].unique().tolist() == ["queries"]
    assert frame.attrs["notes"] == [
        "left out (no stream of queries): timeline · digits · mlp",
        "errors are not known without frozen: refinement · digit-clusters · mlp",
    ]
    with pytest.raises(UserError, match=r"nothing to draw. left out \(no stream of queries\): timeline"):
        table_of("composition", full_record)


def test_curves_are_means_over_seeds_with_intervals(record: Record) -> None:
    frame = table_of("curves", record).set_index(["metric", "method", "time"])
    row = frame.loc[("oec", "cft", "4")]
    assert (row["value"], row["seeds"], row["interval"], row["step"]) == (0.7, 2, "seeds", 4)
    assert (row["low"], row["high"]) == (0, 1)  # 0.7 -+ 1.27, cut at what a share can be
    assert frame.loc["csr"]["value"].tolist() == [1.0] * 3
    assert set(frame.index.get_level_values("metric")) == {"oec", "csr"}


def test_curves_of_other_benchmarks(full_record: Record) -> None:
    frame = table_of("curves", full_record)
    assert frame["metric"].unique().tolist() == ["id", "ood", "tas"]
    assert frame[frame["metric"] == "id"]["time"].tolist() == ["a", "b", "a", "b"]


def test_answers_that_differ(record: Record) -> None:
    frame = table_of("disagreement", record, step_ranges="1-2,3-4").set_index(["steps", "method", "other"])
    assert frame["of"].unique().tolist() == ["different answers"]
    early, late = frame.loc["t = 1 to 2"]["value"], frame.loc["t = 3 to 4"]["value"]
    assert early["cft", "er"] == 0.0
    assert early["cft", "frozen"] == early["frozen", "cft"] == 0.25
    assert late["cft", "er"] == pytest.approx((0.5 + 0.25) / 2)  # of four queries two, with the second seed one
    assert late["er", "frozen"] == pytest.approx((0.75 + 1.0) / 2)
    row = frame.loc[("t = 3 to 4", "cft", "er")]
    assert (row["seeds"], row["low"], row["high"]) == (2, 0, 1)  # 0.375 -+ 1.59
    assert len(frame) == 2 * 6
    halves = table_of("disagreement", record)["steps"].unique().tolist()
    assert halves == ["t = 1 to 2", "t = 3 to 4"]


def test_a_metric_that_differs_is_compared_on_common_seeds(record: Record) -> None:
    some = Record([run for run in record.runs if (run.method, run.seed) != ("er", 1)])
    frame = table_of("disagreement", some, step_ranges="1-2, 1-4", metric="oec").set_index(["steps", "method", "other"])
    assert frame.loc[("t = 1 to 2", "cft", "frozen"), "value"] == pytest.approx(0.15)
    assert frame.loc[("t = 1 to 4", "frozen", "cft"), "value"] == pytest.approx(-0.15)
    row = frame.loc[("t = 1 to 4", "er", "cft")]
    assert (row["value"], row["seeds"], np.isnan(row["low"])) == (pytest.approx(0.1), 1, True)
    assert frame["of"].unique().tolist() == ["oec"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step_ranges": "3"}, "given as 10-20,30-40 .* not as '3'"),
        ({"step_ranges": "3-9"}, "step range 3-9 is not within the steps 1 to 4"),
        ({"step_ranges": "3-2"}, "step range 3-2 is not within"),
        ({"step_ranges": "0-2"}, "step range 0-2 is not within"),
        ({"metric": "oek"}, r"no metric 'oek'\. Did you mean 'o"),
        ({"metric": "sh"}, "no metric over time 'sh'"),
    ],
)
def test_differences_that_cannot_be(record: Record, options: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        table_of("disagreement", record, **options)


def test_one_method_has_none_to_differ_from(record: Record) -> None:
    with pytest.raises(UserError, match="no two methods in a stream of queries"):
        table_of("disagreement", of(record, "er"))


def test_gains_are_paired_by_seed(record: Record, tmp_path: Path) -> None:
    other = {"options": {"beta": 0.1}}
    more = [
        refined(tmp_path, m, 0, [final("oec", v)], ANSWERS["er"], **other) for m, v in (("frozen", 0.3), ("er", 0.35))
    ]
    frame = table_of("gains", Record([*record.runs, *more])).set_index(["stream", "method"])
    steady, restless = (f"alpha=0.9, beta={beta}, gamma=0.8" for beta in (0.5, 0.1))
    assert frame["value"].round(6).to_dict() == {
        (restless, "er"): 0.05,
        (steady, "cft"): 0.15,
        (steady, "er"): 0.2,
    }
    assert frame.loc[(steady, "cft"), "low"] == pytest.approx(0.15 - T1 * 0.05)
    assert frame.loc[(steady, "er"), "high"] == pytest.approx(0.2)
    assert np.isnan(frame.loc[(restless, "er"), "low"])
    assert frame["panel"].unique().tolist() == ["refinement · digit-clusters · mlp"]


def test_what_gains_are_over(record: Record, tmp_path: Path) -> None:
    over = table_of("gains", record, baseline="cft").set_index("method")
    assert over["value"].round(6).to_dict() == {"er": 0.05, "frozen": -0.15}
    with pytest.raises(UserError, match=r"nothing to draw. left out \(no final overall \(OEC\) of mir"):
        table_of("gains", record, baseline="mir")
    kinds = [
        refined(tmp_path, f"mir(replay_every={k})", 0, [final("oec", 0.5)], ANSWERS["er"], settings={"replay_every": k})
        for k in "23"
    ]
    assert len(table_of("gains", Record([*record.runs, kinds[0]]), baseline="mir")) == 3
    with pytest.raises(UserError, match=r"'mir' is ambiguous: it may be mir\(replay_every=2\), mir\(replay_every=3\)"):
        table_of("gains", Record([*record.runs, *kinds]), baseline="mir")


@pytest.mark.parametrize("name", ["curves", "composition", "disagreement", "gains"])
def test_they_can_be_drawn(record: Record, tmp_path: Path, name: str) -> None:
    frame, chart = draw(name, record)
    table = save(frame, chart, tmp_path / f"{name}.svg")
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert "NaN" not in drawn
    named = frame["part"] if name == "composition" else frame["method"]
    assert all(f">{text}</text>" in drawn for text in named.unique())
    assert table.read_text().splitlines()[0] == ",".join(frame.columns)


def test_the_page_shows_how_differently_methods_answer(record: Record, full_record: Record) -> None:
    text = page(record)
    assert "Disagreement of methods" in text
    assert "errors of the upstream model in stream 0, by cluster" in text
    assert text.count("different answers of each two methods") == 2
    assert "Disagreement of methods" not in page(full_record)


def stream_file(folder: Path, **changes: Any) -> Path:
    asked = [("a", "x", "x"), ("a", "x", "y"), ("b", "x", "x")]
    steps = [
        [{"input": f"{k}", "truth": [y], "id": f"{c}-{k}", "mistake": answer}] for k, (c, y, answer) in enumerate(asked)
    ]
    steps[2].append({**steps[1][0], **changes})
    path = folder / "stream.json"
    path.write_text(json.dumps(steps))
    return path


def test_a_released_stream_from_its_file(tmp_path: Path) -> None:
    found = of_file(stream_file(tmp_path))
    assert (found.clusters, found.times) == (["a", "b"], ["1", "2", "3"])
    assert found.queries.tolist() == [[1, 0], [1, 0], [1, 1]]
    assert found.errors is not None
    assert found.errors.tolist() == [[0, 0], [1, 0], [1, 0]]
    assert found.satisfaction.tolist() == [1.0, 0.5, 0.5]
    frame, _ = draw("composition", Record([]), stream=tmp_path / "stream.json")
    assert frame.attrs["notes"] == ["the upstream model answers 50.00% of 4 queries right (CSR)"]


def test_a_released_stream_is_found_by_its_name_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nli").mkdir()
    stream_file(tmp_path / "nli")
    monkeypatch.setenv("DRIFTLINE_DATA", str(tmp_path))
    frame, _ = draw("composition", Record([]), stream=Path("nli/stream.json"))
    monkeypatch.delenv("DRIFTLINE_DATA")
    again, _ = draw("composition", Record([]), data_dir=tmp_path, stream=Path("nli/stream.json"))
    assert (
        frame.attrs["notes"] == again.attrs["notes"] == ["the upstream model answers 50.00% of 4 queries right (CSR)"]
    )


def test_files_that_hold_no_such_stream(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not hold a model's answer to every query"):
        of_file(stream_file(tmp_path, id="c-1", input="new", mistake=None))
    with pytest.raises(UserError, match="a table in it"):
        of_file(stream_file(tmp_path, id="c-1", input="<Table> of"))
    with pytest.raises(UserError, match=r"no file .*nowhere"):
        of_file(tmp_path / "nowhere")
    (tmp_path / "stream.json").write_text("{}")
    with pytest.raises(UserError):
        of_file(tmp_path / "stream.json")


def test_the_released_stream_is_drawn_by_rounding_and_in_equal_parts(real_data: list[Path]) -> None:
    """rounding=round and others=equal: what is left over comes from one of the other clusters."""
    name = "nli/cmr_nli_submission_stream.T=100,b=64,alpha=0.9,beta=0.5,gamma=0.8.json.gz"
    try:
        found = of_file(locate(real_data, [name], "nli", ""))
    except UserError as error:
        pytest.skip(str(error))
    assert found.clusters[0] == "snli"
    for t, (inside, *clusters) in enumerate(found.queries.tolist(), 1):
        upstream, major, others = episode_counts(t, 64, 0.9, 0.8, "round")
        each, over = divmod(others, 3)
        assert inside == upstream
        assert sorted(clusters) == sorted([major, each, each, each + over])
    assert found.errors is not None
    assert (found.queries.sum(), found.errors.sum()) == (6400, 4974)
    assert (found.errors <= found.queries).all()
    assert found.satisfaction[-1] == pytest.approx(1 - 4974 / 6400)
