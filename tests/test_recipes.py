"""Every recipe is a valid spec whose names and settings exist, and says truly what it is about and what it reads."""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

import driftline
from driftline import models, recipes, registry
from driftline.data import load
from driftline.engine.planning import matrix
from driftline.engine.run import as_spec
from driftline.errors import UserError
from driftline.published import numbers as published
from driftline.report.tables.papers.seq_to_final import BOTTOM, TOP, VARIANTS
from driftline.spec import Spec, read, read_yaml
from driftline.spec.keys import run_key
from driftline.tasks import Classification

from . import stand_ins

RECIPES = [recipes.path_of(f"recipe:{name}") for name in recipes.names()]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_expands_to_jobs(path: Path) -> None:
    spec = read(path)
    spec = spec.model_copy(update={"seeds": spec.seeds[:2]})  # the others differ from these as these do
    jobs = spec.jobs(default_model="mlp")
    assert len(jobs) == len(spec.methods) * len(spec.seeds)
    assert len({run_key(job, "") for job in jobs}) == len(jobs)


def test_there_are_recipes() -> None:
    assert len(RECIPES) + len(recipes.matrices()) == len(list(recipes.FOLDER.rglob("*.yaml"))) > 40


@pytest.mark.parametrize("name", recipes.matrices())
def test_a_matrix_has_forty_methods_or_more_and_every_benchmark_more_than_once(name: str) -> None:
    content = read_yaml(f"recipe:{name}")
    made = matrix.read(content)
    assert len(made.methods) >= 40
    columns = Counter(matrix.benchmark_of(column, made.benchmarks[column]) for column in made.benchmarks)
    assert set(columns) == set(registry.names("benchmark"))
    assert min(columns.values()) >= 2


def test_a_recipe_runs_by_name() -> None:
    assert as_spec("recipe:refinement/qa.full") == recipe("qa.full.yaml")
    with pytest.raises(UserError, match=r"no recipe 'refinment/qa\.full'\. Did you mean 'refinement/qa\.full'\?"):
        as_spec("recipe:refinment/qa.full")
    with pytest.raises(UserError, match=re.escape("no recipe '../spec/x'")):
        read_yaml("recipe:../spec/x")


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_names_the_table_of_a_paper(name: str) -> None:
    found = recipes.describe(name)
    table = re.sub("Tables ([0-9]+) to [0-9]+", r"Table \1", found.table.removesuffix(" at small scale"))
    assert table in {number.source for number in published._all() if number.benchmark == found.benchmark}
    assert len(found.description) > 30
    assert found.methods == tuple(choice.name for choice in read(recipes.path_of(f"recipe:{name}")).methods)


@pytest.mark.parametrize("name", [name for name in recipes.names() if recipes.describe(name).needs])
def test_a_recipe_needs_the_files_that_its_dataset_looks_for(name: str, tmp_path: Path) -> None:
    found, data = recipes.describe(name, tmp_path), read(recipes.path_of(f"recipe:{name}")).data
    with pytest.raises(UserError, match="not found: none of") as error:
        load(data.name, data.settings, [tmp_path])
    looked_for = str(error.value).partition("none of ")[2].partition(f" in {tmp_path}")[0].split(", ")
    for file in looked_for:
        assert any(fnmatch(file, pattern) for pattern in found.needs[0].files), file


def test_needs_are_looked_for_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, data = "test-time/ccc-easy.full", tmp_path / "data"

    def present() -> list[bool]:
        return [need.present for need in recipes.describe(name, data).needs]

    assert present() == [False] * 4
    (data / "weights").mkdir(parents=True)
    (data / "weights" / "resnet50-0676ba61.pth").touch()
    (data / "frost").mkdir()  # ./frost is in the working folder, not in the data folder
    assert present() == [False, True, False, False]
    for path in (data / "imagenet-val", tmp_path / "frost", tmp_path / "resnet50-calibration.safetensors"):
        path.mkdir()
    assert present() == [True] * 4
    assert recipes.describe(name, data).present
    assert len(recipes.describe("refinement/qa.full", data).needs) == 7
    assert recipes.describe("refinement/digits.cpu", data).present


SEQ_TO_FINAL = [
    path for path in RECIPES if path.parent.name == "seq-to-final" and path.name != "imagenet-start.full.yaml"
]


@pytest.mark.parametrize("path", SEQ_TO_FINAL, ids=lambda path: path.stem)
def test_every_method_of_a_paper_recipe_has_a_printed_number(path: Path) -> None:
    jobs = list(read(path).jobs(default_model="conv-2"))
    assert jobs
    for job in jobs:
        found = published.lookup(job.benchmark, job.data.name, job.options["shifts"])
        name = published.published_name(job.benchmark, job.label)
        assert name in {number.method for number in found}
        assert path.name.endswith(".cpu.yaml") or job.model.name in {number.model for number in found}


def test_costs_of_test_time_by_hand() -> None:
    names = [name for name in recipes.names() if name.startswith("test-time/") and name.endswith(".full")]
    assert all(recipes.describe(name).cost for name in names)
    cost = recipes.describe("test-time/table-5.full").cost
    assert cost is not None
    # 14 methods, 3 seeds, 7.5 million images, a forward and a backward pass of ResNet-50: 4.09 G and twice that
    assert cost.runs == 14 * 3
    assert cost.macs == pytest.approx(14 * 3 * 7.5e6 * 3 * 4.09e9, rel=0.01)


def test_costs_of_open_world_by_hand() -> None:
    """Three pretrainings of MoCo: four passes over batches of 256; 91,858 answers; 18 rounds of 4 epochs in 5 of 6."""
    cost = recipes.describe("open-world/ned-moco.full").cost
    assert cost is not None
    assert (cost.runs, cost.basis) == (18, "formula")
    rounds = 5000 * 18 * 19 / 2 * 4 * 3
    warmup = 200 * 50 * 51 / 2 * 4 * 3  # of OLTR
    passes = 3 * (450_000 * 256 * 4 + 6 * 91_858 + 5 * rounds + warmup)
    assert cost.macs == pytest.approx(passes * 1.814e9, rel=0.01)  # ResNet-18


def test_no_method_of_the_imagenet_start_needs_named_blocks() -> None:
    spec = recipe("imagenet-start.full.yaml")
    network = models.build(spec.model.name, (32, 32, 3), 2, width=4)
    for method in spec.methods:
        learner = driftline.registry.get("method", method.name)(**method.settings)
        learner.prepare(network, Classification(("cat", "dog")))


def test_the_paper_recipes_cover_its_columns() -> None:
    def labels(name: str) -> set[str]:
        path = next(path for path in SEQ_TO_FINAL if path.name == name)
        return {published.published_name(job.benchmark, job.label) for job in read(path).jobs(default_model="")}

    for number in (8, 9, 10, 11, 12, 14):
        assert labels(f"table-{number}.full.yaml") == {*TOP, *BOTTOM}
    assert labels("table-13.full.yaml") == {*TOP, *BOTTOM} - {"oracle"}
    assert labels("table-15.full.yaml") == set(VARIANTS)
    assert labels("RCL.cpu.yaml") == labels("conv.full.yaml") == {*TOP, *BOTTOM} - {"st-b", "sst-b", "jst-b"}


def recipe(name: str) -> Spec:
    """The recipe of this file name, with its folder if several have it."""
    return read(next(path for path in RECIPES if path.as_posix().endswith(f"/{name}")))


def printed_methods(spec: Spec) -> list[str]:
    """The names under which the methods of a recipe were printed, in its order."""
    seeds = sorted(spec.seeds)
    jobs = [job for job in spec.jobs(default_model="") if job.seed == seeds[0]]
    return [published.published_name(job.benchmark, job.label) for job in jobs]


TABLE_1 = {"cin-c": "cin-c", "cin-3dcc": "cin-3dcc", **{f"ccc-{d}": f"ccc {d}" for d in ("easy", "medium", "hard")}}


@pytest.mark.parametrize("name", TABLE_1)
def test_test_time_recipes_have_the_rows_and_the_stream_of_table_1(name: str) -> None:
    spec = recipe(f"{name}.full.yaml")
    found = published.lookup("test-time", "imagenet-val", TABLE_1[name], "resnet50")
    assert set(printed_methods(spec)) == {n.method for n in found if n.source == "RDumb Table 1"}
    options = spec.jobs(default_model="")[0].options
    shown = {
        option: options[option]
        for option in ("order", "severity", "images", "images_per_point", "batch", "crop", "jpeg")
    }
    ccc = {"order": "ccc", "images": 7_500_000, "images_per_point": 1000, "crop": True, "jpeg": 85}
    cin = {"order": name, "images_per_point": 50_000}
    expected = {
        "cin-c": {**cin, "images": 15 * 50_000, "crop": False, "jpeg": 85},
        "cin-3dcc": {**cin, "images": 12 * 50_000, "crop": None, "jpeg": None},
    }
    assert shown == {"severity": 5.0, "batch": 64, **expected.get(name, ccc)}
    assert (options["frost"] is None) == (name == "cin-3dcc") == (options["files"] is not None)
    assert len(spec.seeds) == (3 if name.startswith("ccc") else 10)


ROWS = {
    ("open-world", "NED Table 1", "resnet18"): ("ned", "ned-moco", "ned-episodes"),
    ("open-world", "NED Table 1", "conv-4"): ("ned-conv-4",),
    ("open-world", "NED Table 3", "resnet18"): ("ned-table-3",),
    ("open-world", "NED Table 4", "resnet50"): ("ned-table-4", "ned-table-4-moco"),
    ("open-world", "NED Table 8", "resnet18"): ("ned-table-8",),
    ("test-time", "RDumb Table 2", "timm:vit_base_patch16_224"): ("table-2",),
    ("test-time", "RDumb Table 3", "timm:vit_base_patch16_224"): ("table-3",),
    ("test-time", "RDumb Table 4", "resnet50"): ("table-4",),
    ("test-time", "RDumb Table 7", "resnet50"): ("table-7",),
}


@pytest.mark.parametrize(("benchmark", "source", "model"), ROWS)
def test_recipes_have_the_rows_of_their_table(benchmark: str, source: str, model: str) -> None:
    specs = [recipe(f"{benchmark}/{name}.full.yaml") for name in ROWS[benchmark, source, model]]
    assert {spec.model.name for spec in specs if spec.model} == {model}
    printed = [n for n in published._all() if n.benchmark == benchmark and n.source.partition(",")[0] == source]
    rows = {n.method for n in printed if n.model == model and n.metric in ("overall", "stream-accuracy")}
    assert sorted(name for spec in specs for name in printed_methods(spec)) == sorted(rows)


def test_sweeps_and_ablations_include_the_published_settings() -> None:
    table_8 = {n.method for n in published._all() if n.source == "RDumb Table 8"}
    assert (
        table_8
        <= set(printed_methods(recipe("test-time/table-8.full.yaml")))
        == {"eata(penalty_weight=100)", "eata", "rdumb"}
    )
    assert recipe("test-time/table-8-cin-c.full.yaml").methods == recipe("test-time/table-8.full.yaml").methods
    table_5 = {n.method for n in published._all() if n.source == "RDumb Table 5"}
    assert table_5 < set(printed_methods(recipe("test-time/table-5.full.yaml")))
    table_9 = {n.method for n in published._all() if n.source == "RDumb Table 9"}
    assert {"eata", *table_9} == set(printed_methods(recipe("test-time/table-9.full.yaml")))
    n_candidates = {f"{name}(n_candidates={c})" for name in ("mir", "maxloss") for c in (512, 1024)}
    assert n_candidates < set(printed_methods(recipe("qa-ablations.full.yaml")))
    options = recipe("test-time/table-4.full.yaml").options
    assert (options["order"], options["images"], options["images_per_point"], options["crop"]) == (
        "holdout",
        750_000,
        50_000,
        False,
    )


def test_a_base_is_merged_and_a_circle_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("base: recipe:test-time/ccc-hard.full\nseeds: 1\ntest-time: {images_per_point: 2000}\n")
    spec, base = read(mine), recipe("ccc-hard.full.yaml")
    assert spec.options == {**base.options, "images_per_point": 2000}
    assert (spec.seeds, spec.methods, spec.model) == ((0,), base.methods, base.model)
    (tmp_path / "other.yaml").write_text("base: mine.yaml\nseeds: 2\n")
    assert read(tmp_path / "other.yaml").options == spec.options
    mine.write_text("base: other.yaml\n")
    with pytest.raises(UserError, match=r"its base .*mine.yaml is based on it"):
        read(mine)
    mine.write_text("base: [a]\n")
    with pytest.raises(UserError, match=r"base is recipe:NAME or the name of a YAML file, not \['a'\]"):
        read(mine)


def test_the_qa_recipe_has_all_16_rows_of_table_1() -> None:
    spec = recipe("qa.full.yaml")
    found = published.lookup("refinement", "qa", "alpha=0.9, beta=0.5, gamma=0.8")
    assert set(printed_methods(spec)) == {n.method for n in found if n.source == "CMR Table 1"}
    assert len(spec.methods) == 16
    searches = {printed: job.search for printed, job in zip(printed_methods(spec), spec.jobs("")[::40], strict=True)}
    tried = {
        name: search and [tuple(point.values()) for point in search.candidates] for name, search in searches.items()
    }
    assert tried["frozen"] is tried["offline"] is None
    assert tried["cft"] == tried["mir(replay_every=3)"] == [(10,), (20,)]
    assert {(10, 1.0), (20, 10.0)} < set(tried["online-l2"] or ())  # file names, appendix
    assert set(tried["online-ewc"] or ()) == {(10, 5.0), (10, 250.0), (20, 5.0), (20, 250.0)}
    assert {search.rule for search in searches.values() if search} == {"validation-streams"}
    settings = [job.method.settings for job in spec.jobs("") if job.method.name != "frozen"]
    assert {(s["lr"], s["batch"]) for s in settings} == {(3e-5, 8), (3e-5, 64)}  # 64: offline
    options = spec.jobs("")[0].options
    assert [options[name] for name in ("episodes", "queries_per_episode", "upstream_set", "held_out")] == [
        100,
        64,
        512,
        256,
    ]
    assert options["upstream_updates"] == 30 * -(-86_588 // 64)  # 30 epochs of SQuAD's training part in MRQA


@pytest.mark.parametrize(("setting", "value"), [("beta", 0.1), ("beta", 0.9), ("gamma", 0.5), ("gamma", 0.2)])
def test_the_qa_recipes_of_table_2_have_its_rows_with_the_printed_k(setting: str, value: float) -> None:
    spec = recipe(f"qa-{setting}-{value}.full.yaml")
    stream = {"alpha": 0.9, "beta": 0.5, "gamma": 0.8, setting: value}
    options = spec.jobs("")[0].options
    assert {name: options[name] for name in stream} == stream
    protocol = ", ".join(f"{name}={number:g}" for name, number in stream.items())
    printed = {n.method for n in published.lookup("refinement", "qa", protocol) if n.source == "CMR Table 2"}
    assert printed == {"cft", "online-ewc", "er(replay_every=3)", "maxloss(replay_every=3)", "mir(replay_every=3)"}
    assert set(printed_methods(spec)) == {"frozen", *printed}


FMOW = "temporal-metrics-table-1-fmow.full.yaml"
TIMELINE = {
    FMOW: ("fmow", "Eval-Stream", "temporal-metrics Table 1"),
    "wild-time-table-2-fmow.full.yaml": ("fmow", "Eval-Fix", "Wild-Time Table 2"),
    "temporal-metrics-table-2-yearbook.full.yaml": ("yearbook", "Eval-Stream", "temporal-metrics Table 2"),
    "wild-time-table-2-yearbook.full.yaml": ("yearbook", "Eval-Fix", "Wild-Time Table 2"),
}


@pytest.mark.parametrize("name", TIMELINE)
def test_timeline_recipes_have_the_rows_of_their_table(name: str) -> None:
    spec, (data, protocol, source) = recipe(name), TIMELINE[name]
    printed = {n.method for n in published.lookup("timeline", data, protocol) if n.source == source}
    assert set(printed_methods(spec)) == printed
    assert spec.data.name == data


def test_the_fmow_recipe_trains_the_layers_of_densenet_121_at_224_pixels() -> None:
    spec = recipe(FMOW)
    assert spec.model is not None
    assert spec.model.settings == {"weights": "densenet121-a639ec97.pth", "head": "new"}
    network = models.build(spec.model.name, (224, 224, 3), 1000)
    assert sum(weight.numel() for weight in network.parameters()) == 7_978_856  # as published for ImageNet
    assert spec.data.settings["size"] == 224


def test_the_huffpost_recipe_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: transformers does not initialize DistilBERT's position ids beside the simulated device."""
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    stand_ins.texts(tmp_path)
    stand_ins.text_models(tmp_path)
    spec = {**stand_ins.shrunk(read_yaml("recipe:timeline/wild-time-table-2-huffpost.full")), "device": "cpu"}
    (run,) = driftline.run(spec, data_dir=tmp_path, runs=tmp_path / "runs").runs
    assert run.card.weights is not None
    assert run.card.weights.initialized == ["head.weight", "head.bias"]
    assert len(run.card.weights.left_out) == 5  # of the masked language model's head
    scores = run.table("scores")
    each = scores[(scores["metric"] == "fix-ood") & (scores["stat"] == "each")]
    assert each["time"].tolist() == ["2016", "2017", "2018"]
