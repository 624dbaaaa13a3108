"""Open worlds in a given order: a user's file, and NED's published sequences in stand-ins of their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import OpenWorld, ordered_world, published_world
from driftline.streams.open_world.published import expand_folder
from driftline.tasks import Classification
from driftline.types import Samples

UPSTREAM = [f"n0000000{k}" for k in range(4)]
NOVEL = [f"n0000001{k}" for k in range(4)]
WNIDS = [*UPSTREAM, *NOVEL]
LABELS = [0, 0, 2, 1, 2, 3]  # 2 and 3 are borrowed by novel classes, 0 and 1 are ImageNet's
CLASS_MAP = {NOVEL[0]: np.int64(2), NOVEL[1]: np.int64(3)}
AS_SHOWN = [NOVEL[1], UPSTREAM[0], UPSTREAM[0], NOVEL[0], UPSTREAM[1], NOVEL[0]]  # the last item comes first


def dataset(per_class: int = 5) -> Dataset:
    y = np.repeat(np.arange(8), per_class)
    ids = np.array([f"{WNIDS[k]}/{WNIDS[k]}_{n}.JPEG" for k in range(8) for n in range(per_class)])
    return Dataset("eight", Samples(np.zeros((len(y), 2)), y, id=ids), Classification(tuple(WNIDS)))


def published(folder: Path, images: dict[int, list[str]] | None = None) -> str:
    """Write five sequences as NED's repository has them, with S2's odd file name and its full class map."""
    (folder / "imagenet_classes.txt").write_text("\n".join(UPSTREAM) + "\n", encoding="utf-8")
    for n in range(1, 6):
        inside = folder / f"S{n}"
        inside.mkdir(parents=True)
        own = {UPSTREAM[0]: np.int64(0), UPSTREAM[1]: np.int64(1)} if n < 3 else {}
        np.save(inside / ("all_labels.npy" if n == 2 else f"all_labels{n}.npy"), np.array(LABELS))
        np.save(inside / f"class_map{n}.npy", np.array({**own, **CLASS_MAP}, dtype=object), allow_pickle=True)
        np.save(inside / f"imgs_per_class{n}.npy", np.zeros(4))
        if images and n in images:
            np.save(inside / f"sequence{n}.npy", np.array(images[n]))
    return str(folder)


def names(world: OpenWorld) -> list[str]:
    return [WNIDS[k] for k in world.dataset.samples.y[world.rows]]


def test_a_file_orders_the_stream_and_what_it_does_not_list_is_upstream(tmp_path: Path) -> None:
    listed = [39, 0, 12, 38, 37, 36, 35, 1]
    pd.DataFrame({"row": listed}).to_csv(tmp_path / "order.csv", index=False)
    world = ordered_world(dataset(), str(tmp_path / "order.csv"), block=3)
    assert np.concatenate([world[k].samples.id for k in range(3)]).tolist() == dataset().samples.id[listed].tolist()
    assert world.upstream_rows.tolist() == [k for k in range(40) if k not in listed]
    assert (world.pretrain_classes, world.novel_classes) == ((0, 2), (7,))
    marks = ["stream"] * 6 + ["upstream"] * 2
    pd.DataFrame({"row": listed, "split": marks}).to_csv(tmp_path / "order.csv", index=False)
    world = ordered_world(dataset(), str(tmp_path / "order.csv"))
    assert (world.rows.tolist(), world.upstream_rows.tolist()) == (listed[:6], [1, 35])
    assert (world.upstream_classes, world.novel_classes) == ((0, 7), (2,))


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_labels_alone_decide_the_classes_and_images_are_drawn(tmp_path: Path, number: int) -> None:
    files = expand_folder(published(tmp_path))
    assert len(files) == 11
    world, other, *more = (published_world(dataset(), files, number, seed=Seed(k)) for k in range(4))
    assert names(world) == names(other) == AS_SHOWN
    assert len(set(world.rows.tolist())) == 6
    assert len({tuple(one.rows) for one in (world, other, *more)}) > 1
    assert world.order == "classes as published, images of each class drawn"
    assert (world.upstream_classes, world.pretrain_classes, world.novel_classes) == ((0, 1, 2, 3), (0, 1), (4, 5))
    assert np.bincount(dataset().samples.y[world.upstream_rows]).tolist() == [1, 3, 5, 5]
    assert world.upstream_rows.tolist() == other.upstream_rows.tolist()
    assert not set(world.upstream_rows) & {*world.rows, *other.rows}


def test_settings_are_not_chosen_by_images_that_are_tested_on(tmp_path: Path) -> None:
    files = expand_folder(published(tmp_path))
    rows = {k: set(published_world(dataset(4), files, k).rows.tolist()) for k in range(1, 6)}
    assert not (rows[1] | rows[2]) & (rows[3] | rows[4] | rows[5])
    few = {k: set(published_world(dataset(3), files, k).rows.tolist()) for k in (1, 3)}
    assert len(few[1] & few[3]) == 2, "of two classes there are 3 images, and each sequence has 2"


def test_named_images_come_in_their_order_from_the_last_and_no_upstream_image_is_in_any_sequence(
    tmp_path: Path,
) -> None:
    third = [f"data/S3/sequence3/{name}_{k}.JPEG" for k, name in enumerate([UPSTREAM[0], NOVEL[3], UPSTREAM[1]])]
    fourth = [f"{UPSTREAM[2]}_4.JPEG", "n77777777_1.JPEG"]  # one that the data lack does not matter to others
    files = expand_folder(published(tmp_path, {3: third, 4: fourth}))
    world = published_world(dataset(), files, 3)
    assert [one.rpartition("/")[2] for one in dataset().samples.id[world.rows]] == [
        *(f"{UPSTREAM[1]}_2.JPEG", f"{UPSTREAM[0]}_0.JPEG", f"{NOVEL[3]}_1.JPEG"),
    ]
    assert (world.order, world.novel_classes) == ("images as published", (7,))
    by_label = published_world(dataset(), files, 5)
    assert world.upstream_rows.tolist() == by_label.upstream_rows.tolist()
    assert not {0, 7, 14} & set(world.upstream_rows)
    with pytest.raises(UserError, match="S4 has the image n77777777_1, which dataset 'eight' lacks"):
        published_world(dataset(), files, 4)


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    files = expand_folder(published(tmp_path))
    with pytest.raises(UserError, match="S3 has 2 images of n00000000, and dataset 'eight' has 1"):
        published_world(dataset(1), files, 3)
    with pytest.raises(UserError, match="the files do not have sequence S6, but S1, S2"):
        published_world(dataset(), files, 6)
    few = Dataset("few", dataset().samples[:25], Classification(tuple(WNIDS[:5])))
    with pytest.raises(UserError, match="S3 has the class n00000011, which dataset 'few' lacks"):
        published_world(few, files, 3)
    np.save(tmp_path / "S5" / "all_labels5.npy", np.zeros(0, int))
    with pytest.raises(UserError, match="S5: the sequence S5 lists no image"):
        published_world(dataset(), files, 5)
    np.save(tmp_path / "S3" / "class_map3.npy", np.arange(3))
    with pytest.raises(UserError, match="expected a dict from WordNet ids to class numbers"):
        published_world(dataset(), files, 3)
    with pytest.raises(UserError, match=r"there is no file .*class_map9"):
        published_world(dataset(), (*files, f"{tmp_path}/S9/class_map9.npy"), 3)
    (tmp_path / "imagenet_classes.txt").unlink()
    with pytest.raises(UserError, match="is a folder without published sequences: expected NED's files"):
        expand_folder(str(tmp_path))
    assert expand_folder("order.csv") == "order.csv"
