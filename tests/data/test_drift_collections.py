"""Streams with drift in their standard files: tiny files in the real layouts, and the real ones where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from driftline.cli.printing import dataset_list
from driftline.data import insects as insects_module
from driftline.data import load
from driftline.data import tabred as tabred_module
from driftline.data.formats.arff import read_arff
from driftline.errors import UserError
from driftline.tasks import Regression

HEADER = "date,day,period,nswprice,nswdemand,vicprice,vicdemand,transfer,class\n"
ROWS = [f"0.{k},{k % 7},0.{k},0.1,0.2,0.3,0.4,0.5" for k in range(1, 9)]
UP = [1, 1, 0, 1, 0, 0, 1, 1]
ARFF = """% a comment
@relation airlines
@attribute Airline {AA, 'US Air'}
@attribute Flight numeric
@ATTRIBUTE AirportFrom {ATL,BOS,JFK}
@attribute AirportTo {ATL,BOS,JFK}
@attribute DayOfWeek {1,2,3,4,5,6,7}
@attribute Time numeric
@attribute Length real
@attribute Delay {0,1}

@data
"""
FLIGHTS = [
    *("AA,1,ATL,BOS,3,15,205,1", "'US Air',2,BOS,ATL,3,20,100,0"),
    *("AA,3,JFK,BOS,4,15,205,0", "AA,4,ATL,JFK,4,15,?,1"),
]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def electricity(folder: Path, form: str) -> None:
    """Write the same half hours as one of their copies."""
    names = ["DOWN", "UP"]
    if form == "river":
        write(folder / "electricity.csv", HEADER + "".join(f"{r},{names[u]}\n" for r, u in zip(ROWS, UP, strict=True)))
    elif form == "moa":
        inputs = "".join(f"@attribute {name} numeric\n" for name in HEADER.split(",")[:-1])
        rows = "".join(f"{r},{names[u]}\n" for r, u in zip(ROWS, UP, strict=True))
        write(folder / "elecNormNew.arff", f"@relation elec\n{inputs}@attribute class {{UP,DOWN}}\n@data\n{rows}")
    elif form == "driftDatasets":
        write(folder / "elec2_data.dat", "".join(r.replace(",", " ") + "\n" for r in ROWS))
        write(folder / "elec2_label.dat", "".join(f"{1 - u}\n" for u in UP))
    else:
        rows = "".join(f"{r.split(',', 2)[2]},{u}\n" for r, u in zip(ROWS, UP, strict=True))
        write(folder / "elec.csv", HEADER.split(",", 2)[2] + rows)


@pytest.mark.parametrize("form", ["river", "moa", "driftDatasets", "scikit-multiflow"])
def test_up_is_up_in_every_copy_of_elec2(tmp_path: Path, form: str) -> None:
    electricity(tmp_path, form)
    data = load("elec2", {}, [tmp_path])
    assert data.task.classes == ("DOWN", "UP")
    assert data.samples.y.tolist() == UP
    assert data.samples.time.tolist() == list(range(8))
    assert data.samples.x.shape == (8, 6 if form == "scikit-multiflow" else 8)
    assert data.samples.x[2].tolist() == pytest.approx(
        [float(v) for v in ROWS[2].split(",")][-data.samples.x.shape[1] :]
    )


def test_elec2_refuses_other_classes(tmp_path: Path) -> None:
    write(tmp_path / "electricity.csv", HEADER + "".join(f"{row},SAME\n" for row in ROWS))
    with pytest.raises(UserError, match="'SAME' is neither UP nor DOWN"):
        load("elec2", {}, [tmp_path])


def real(name: str) -> Any:
    try:
        return load(name)
    except UserError as error:
        if "not found" in str(error):
            pytest.skip(f"{name} is not here")
        raise


def test_the_real_elec2_has_its_counts() -> None:
    data = real("elec2")
    assert np.bincount(data.samples.y).tolist() == [26_075, 19_237]
    assert "repeating the last label is right for 85.3% of the rows, the majority for 57.5%" in data.notes


def test_the_real_weather_has_its_counts() -> None:
    data = real("noaa")
    assert (np.bincount(data.samples.y).tolist(), data.task.classes) == ([12_461, 5_698], ("no rain", "rain"))
    assert "repeating the last label is right for 68.0% of the rows, the majority for 68.6%" in data.notes
    assert data.samples.x[0].tolist() == pytest.approx([19.8, 14.0, 1019.6, 8.4, 9.9, 15.9, 28.9, 14.0])


def test_an_arff_file_is_read_as_its_header_says(tmp_path: Path) -> None:
    frame = read_arff(write(tmp_path / "a.arff", ARFF + "% note\n" + "\n".join(FLIGHTS) + "\n"))
    assert frame.columns.tolist()[:3] == ["Airline", "Flight", "AirportFrom"]
    assert frame["Airline"].tolist() == ["AA", "US Air", "AA", "AA"]
    assert frame["Length"].isna().tolist() == [False, False, False, True]
    assert frame["DayOfWeek"].tolist() == ["3", "3", "4", "4"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@data\n1\n", "no @attribute line"),
        ("@attribute a numeric\n1\n", "no line @data"),
        ("@attribute\n@data\n", "the line '@attribute'"),
        ("@attribute a {x,y}\n@data\nz\n", "'z' in 'a', which the header does not list"),
        ("@attribute a numeric\n@data\n{0 1}\n", "sparse rows"),
        ("@attribute a numeric\n@data\nx\n", "could not convert"),
    ],
)
def test_a_broken_arff_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_arff(write(tmp_path / "a.arff", text))


def test_any_arff_file_is_a_stream(tmp_path: Path) -> None:
    rows = "\n".join(f"{k / 10},{'ab'[k % 3 == 0]}" for k in range(20))
    path = write(tmp_path / "s.arff", f"@relation s\n@attribute 'x 1' real\n@attribute class {{a,b}}\n@data\n{rows}\n")
    data = load("arff", {"path": str(path)})
    assert (data.task.classes, data.samples.x.shape) == (("a", "b"), (20, 1))
    assert data.samples.y.tolist() == [int(k % 3 == 0) for k in range(20)]
    assert isinstance(load("arff", {"path": str(path), "target": "x 1", "task": "number"}).task, Regression)
    with pytest.raises(UserError, match=r"no attribute of s\.arff 'y'"):
        load("arff", {"path": str(path), "target": "y"})


@pytest.mark.parametrize("form", ["arff", "csv"])
def test_airlines_have_shares_of_airports_from_the_earliest_flights_alone(tmp_path: Path, form: str) -> None:
    flights = [row.replace("?", "90") for row in FLIGHTS] * 10
    columns = "Airline,Flight,AirportFrom,AirportTo,DayOfWeek,Time,Length,Delay"
    head = ARFF if form == "arff" else f"{columns}\n"
    write(tmp_path / f"airlines.{form}", head + "\n".join(flights).replace("'", "" if form == "csv" else "'") + "\n")
    data = load("airlines", {}, [tmp_path])
    assert data.task.classes == ("delayed", "on time")
    assert data.samples.y[:4].tolist() == [0, 1, 1, 0]
    names = [*("AA", "US Air"), "Flight", "From", "To", *("3", "4"), "Time", "Length"]
    table = {name: data.samples.x[:, k].tolist() for k, name in enumerate(names)}
    assert len(names) == data.samples.x.shape[1]
    assert table["US Air"][:4] == [0, 1, 0, 0]
    assert table["From"][:4] == [0.5, 0.25, 0.25, 0.5]  # of the earliest four
    assert table["3"][:4] == [1, 1, 0, 0]


@pytest.mark.parametrize("form", ["arff", "csv with a header", "river"])
def test_insects_are_read_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setitem(insects_module.ROWS, "gradual_balanced", (30, "14"))
    random = np.random.default_rng(0)
    x, y = random.random((30, 33)).round(4), ["ae-aegypti-female", "culex-quinq-male"] * 15
    rows = "".join(",".join(map(str, values)) + f",{label}\n" for values, label in zip(x.tolist(), y, strict=True))
    names = [f"Att{k}" for k in range(1, 34)]
    if form == "arff":
        head = "".join(f"@attribute {name} numeric\n" for name in names)
        head = f"@relation i\n{head}@attribute class {{ae-aegypti-female,culex-quinq-male}}\n@data\n"
        write(tmp_path / "INSECTS-gradual_balanced_norm.arff", head + rows)
    elif form == "river":
        write(tmp_path / "gradual_balanced.csv", rows)
    else:
        write(tmp_path / "INSECTS-gradual_balanced_norm.csv", ",".join([*names, "class"]) + "\n" + rows)
    data = load("insects", {"variant": "gradual_balanced"}, [tmp_path])
    assert data.task.classes == ("ae-aegypti-female", "culex-quinq-male")
    np.testing.assert_allclose(data.samples.x, x, rtol=1e-6)
    assert data.samples.y.tolist() == [0, 1] * 15
    assert "the temperature changes at rows 14" in data.notes


def test_another_variant_under_a_wrong_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(insects_module.ROWS, "incremental_balanced", (2, ""))
    rows = "".join(",".join(["0.5"] * 33) + f",{label}\n" for label in "ab")
    write(tmp_path / "abrupt_balanced.csv", rows)
    with pytest.raises(
        UserError, match=r"abrupt_balanced has 52,848 rows, but this file 2: it has the rows of incremental"
    ):
        load("insects", {}, [tmp_path])


def test_the_streams_of_river_have_its_rows() -> None:
    pytest.importorskip("river")
    data = load("river", {"stream": "phishing"})
    assert (len(data.samples), data.samples.x.shape[1]) == (1250, 9)
    assert isinstance(load("river", {"stream": "trump-approval"}).task, Regression)


def clear_files(base: Path, background: bool = True) -> None:
    classes = ["BACKGROUND", "baseball", "bus"]
    for part in ("train", "test"):
        lists: dict[str, dict[str, str]] = {}
        for bucket in ("2", "1"):
            for label, name in enumerate(classes):
                photographs = {}
                for k in range(2):
                    image = f"labeled_images/{bucket}/{name}/{part}{k}.png"
                    (base / part / image).parent.mkdir(parents=True, exist_ok=True)
                    Image.new("RGB", (8, 6), (10 * int(bucket), 20 * label, k)).save(base / part / image)
                    photographs[str(k)] = {"IMG_PATH": image, "DATE_TAKEN": "2005"}
                listed = f"labeled_metadata/{bucket}/{name}.json"
                write(base / part / listed, json.dumps(photographs))
                lists.setdefault(bucket, {})[name] = listed
        write(base / part / "labeled_metadata.json", json.dumps(lists))
        write(base / part / "class_names.txt", "\n".join(classes))


def test_clear_is_in_the_order_of_its_buckets(tmp_path: Path) -> None:
    clear_files(tmp_path / "clear10")
    data = load("clear", {"size": 8, "published_split": True}, [tmp_path])
    assert data.task.classes == ("BACKGROUND", "baseball", "bus")
    assert data.samples.time.tolist() == [1] * 12 + [2] * 12
    assert data.test.sum() == 12
    for k in (0, 7, 23):
        bucket, label = int(data.samples.time[k]), int(data.samples.y[k])
        assert data.samples.x[np.array([k])][0, 0, 0, :2].tolist() == [10 * bucket, 20 * label]
        assert data.samples.id[k].startswith("test/" if data.test[k] else "train/")
    assert load("clear", {"size": 8}, [tmp_path]).test is None


def tabred_files(base: Path, task: str = "regression") -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    n = 60
    parts = {
        "X_num": random.random((n, 2)).astype(np.float32),
        "X_bin": (random.random((n, 1)) < 0.5).astype(np.float32),
    }
    parts["X_cat"] = np.stack([np.arange(n) % 3, np.arange(n)], axis=1)
    y = random.random(n).astype(np.float32) if task == "regression" else (np.arange(n) % 2).astype(np.uint64)
    parts["X_num"][0, 0] = np.nan
    base.mkdir(parents=True)
    write(base / "info.json", json.dumps({"name": base.name, "task_type": task}))
    for name, table in {**parts, "Y": y}.items():
        np.save(base / f"{name}.npy", table)
    for split, bounds in {"default": (0, 30, 40, 60), "sliding-window-0": (0, 20, 30, 40)}.items():
        (base / f"split-{split}").mkdir()
        for k, part in enumerate(("train", "val", "test")):
            np.save(base / f"split-{split}" / f"{part}_idx.npy", np.arange(bounds[k], bounds[k + 1]))
    return {**parts, "Y": y}


def test_tabred_keeps_the_rows_and_the_test_part_of_a_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabred_module, "MAX_LEVELS", 5)
    parts = tabred_files(tmp_path / "weather")
    data = load("tabred", {"path": "weather"}, [tmp_path])
    assert isinstance(data.task, Regression)
    np.testing.assert_allclose(data.samples.y, parts["Y"], rtol=1e-6)
    assert np.flatnonzero(data.test).tolist() == list(range(40, 60))
    assert data.samples.x.shape == (60, 2 + 1 + 1 + 3)  # a missing number has a column; three levels of a category
    assert "left out, with more than 5 levels: X_cat_1" in data.notes
    assert data.samples.x[7, -4:].tolist() == [parts["X_bin"][7, 0], 0, 1, 0]
    assert load("tabred", {"path": "weather", "published_split": False}, [tmp_path]).test is None
    window = load("tabred", {"path": "weather", "split": "sliding-window-0"}, [tmp_path])
    assert (len(window.samples), np.flatnonzero(window.test).tolist()) == (40, list(range(30, 40)))
    with pytest.raises(UserError, match="no split 'slidingwindow'"):
        load("tabred", {"path": "weather", "split": "slidingwindow"}, [tmp_path])


def test_tabred_refuses_a_row_in_two_parts(tmp_path: Path) -> None:
    tabred_files(tmp_path / "offers", "binclass")
    assert load("tabred", {"path": "offers"}, [tmp_path]).task.classes == ("0", "1")
    np.save(tmp_path / "offers" / "split-default" / "val_idx.npy", np.arange(29, 40))
    with pytest.raises(UserError, match="a row is in two parts"):
        load("tabred", {"path": "offers"}, [tmp_path])


def pictures(base: Path, names: list[str]) -> None:
    for k, name in enumerate(names):
        (base / name).mkdir(parents=True)
        Image.new("RGB", (9, 9), (k, 0, 0)).save(base / name / "a.jpeg")


def test_the_numbered_folders_of_imagenet_v2_are_the_classes(tmp_path: Path) -> None:
    """Sorted as texts, 100 would come before 2."""
    folder = tmp_path / "imagenetv2-matched-frequency-format-val"
    pictures(folder, ["0", "100", "2", "11"])
    data = load("imagenet-v2", {"size": 8, "resize": None}, [tmp_path])
    assert dict(zip(data.samples.id.tolist(), data.samples.y.tolist(), strict=True)) == {
        f"{k}/a.jpeg": k for k in (0, 2, 11, 100)
    }
    write(tmp_path / "imagenet_classes.txt", "\n".join(f"n{k:04d}" for k in range(1000)))
    assert load("imagenet-v2", {"size": 8, "resize": None}, [tmp_path]).task.classes[100] == "n0100"


def test_renditions_and_sketches_are_numbered_by_the_list_of_classes(tmp_path: Path) -> None:
    pictures(tmp_path / "imagenet-r", ["n0003", "n0001"])
    assert load("imagenet-r", {"size": 8}, [tmp_path]).samples.y.tolist() == [0, 1]
    write(tmp_path / "imagenet_classes.txt", "\n".join(f"n{k:04d}" for k in range(5)))
    assert load("imagenet-r", {"size": 8}, [tmp_path]).samples.y.tolist() == [1, 3]
    pictures(tmp_path / "sketch", ["n0002", "n0004"])
    data = load("imagenet-sketch", {"size": 8}, [tmp_path])
    assert (data.name, data.samples.y.tolist()) == ("imagenet-sketch", [2, 4])


def test_iwildcam_is_read_in_wilds_layout(tmp_path: Path) -> None:
    rows = ["split,location_remapped,y,filename,datetime"]
    for k, day in enumerate((3, 1, 2)):
        rows.append(f"train,7,{k % 2},{k}.jpg,2013-06-0{day} 13:51:39.000")
        (tmp_path / "iwildcam_v2.0" / "train").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (k, 0, 0)).save(tmp_path / "iwildcam_v2.0" / "train" / f"{k}.jpg")
    write(tmp_path / "iwildcam_v2.0" / "metadata.csv", "\n".join(rows) + "\n")
    data = load("iwildcam", {"size": 8}, [tmp_path])
    assert data.samples.id.tolist() == ["1.jpg", "2.jpg", "0.jpg"]
    assert (data.name, data.samples.y.tolist()) == ("iwildcam", [1, 0, 0])


def test_the_list_of_datasets_says_what_is_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    electricity(tmp_path, "river")
    dataset_list.print_datasets(tmp_path)
    printed = capsys.readouterr().out
    assert f"files found: {tmp_path / 'electricity.csv'}" in printed
    assert "45,312 rows, 8 inputs, 2 classes; license: not stated" in printed
    assert "not found here. Get INSECTS-VARIANT_norm.arff" in printed
    generated, published = printed.split("Published, ")
    assert "  digits  " in generated
    assert "  digits  " not in published
