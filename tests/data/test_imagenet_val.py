"""Validation images of ImageNet: a folder per class, or a table of labels; and the real ones where they are."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from driftline.data import load, locate
from driftline.errors import UserError

RANDOM = np.random.default_rng(0)


def write(path, width=20, height=16):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = RANDOM.integers(0, 256, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def test_a_class_is_the_place_of_its_sorted_folder(tmp_path):
    root = tmp_path / "imagenet-val"
    for name in ("n03", "n01", "n02"):
        for k in (2, 1):
            write(root / name / f"{k}.png")
    data = load("imagenet-val", {"size": 16}, [tmp_path])
    assert data.samples.id.tolist() == [f"n0{c}/{k}.png" for c in (1, 2, 3) for k in (1, 2)]
    assert data.samples.y.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.task.classes == ("n01", "n02", "n03")
    assert data.samples.x.shape == (6, 16, 16, 3)


def test_a_table_of_labels_wins(tmp_path):
    root = tmp_path / "imagenet-val"
    for k in range(4):
        write(root / f"{k}.png")
    rows = ["3.png,0,n01", "0.png,5,n09", "1.png,5,n09", "2.png,2,n05"]
    (root / "labels.csv").write_text("file,class_index,wnid\n" + "\n".join(rows) + "\n")
    data = load("imagenet-val", {"size": 16}, [tmp_path])
    assert data.samples.id.tolist() == ["0.png", "1.png", "2.png", "3.png"]
    assert data.samples.y.tolist() == [5, 5, 2, 0]
    assert data.task.classes == ("n01", "1", "n05", "3", "4", "n09"), "six outputs, whichever classes have images"
    first = load("imagenet-val", {"size": 16, "per_class": 1}, [tmp_path])
    assert first.samples.id.tolist() == ["0.png", "2.png", "3.png"]


def test_the_centre_is_taken_after_the_short_side_is_resized(tmp_path):
    pixels = write(tmp_path / "imagenet-val" / "a" / "1.png", width=21, height=16)
    tall = write(tmp_path / "imagenet-val" / "b" / "1.png", width=32, height=64)
    data = load("imagenet-val", {"size": 16}, [tmp_path])
    np.testing.assert_array_equal(data.samples.x[0], pixels[:, 2:18])
    shrunk = Image.fromarray(tall).resize((16, 32), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(data.samples.x[1], np.asarray(shrunk)[8:24])


@pytest.mark.parametrize("shape", [(500, 375), (341, 256), (300, 299), (64, 97)])
def test_resized_and_cropped_as_torchvision_does(tmp_path, shape):
    """Its Resize makes the long side int(resize * long / short), its CenterCrop starts at int(round(rest / 2))."""
    pixels = write(tmp_path / "imagenet-val" / "a" / "1.png", *shape)
    write(tmp_path / "imagenet-val" / "b" / "1.png")
    width, height = shape
    short, long = sorted(shape)
    sized = (58, int(58 * long / short)) if width < height else (int(58 * long / short), 58)
    expected = np.asarray(Image.fromarray(pixels).resize(sized, Image.Resampling.BILINEAR))
    left, top = (round((side - 56) / 2) for side in sized)
    expected = expected[top : top + 56, left : left + 56]
    data = load("imagenet-val", {"size": 56, "resize": 58}, [tmp_path])
    np.testing.assert_array_equal(data.samples.x[0], expected)
    options = {"path": str(tmp_path / "imagenet-val"), "size": 56, "resize": 58}
    np.testing.assert_array_equal(load("image-folders", options).samples.x[0], expected)
    assert load("image-folders", {**options, "gray": True}).samples.x.shape == (2, 56, 56, 1)
    with pytest.raises(UserError, match="resize=50: the short side must be at least size=56"):
        load("imagenet-val", {"size": 56, "resize": 50}, [tmp_path])


def test_a_list_of_classes_numbers_the_folders(tmp_path):
    for name in ("n03", "n01"):
        write(tmp_path / "imagenet-val" / name / "1.png")
    (tmp_path / "imagenet_classes.txt").write_text("n03\nn02\nn00\nn01\n")
    data = load("imagenet-val", {"size": 16}, [tmp_path])
    assert (data.samples.y.tolist(), data.task.classes) == ([1, 3], ("n00", "n01", "n02", "n03"))
    (tmp_path / "imagenet_classes.txt").write_text("n03 n02")
    with pytest.raises(UserError, match=r"imagenet_classes\.txt: expected .* no line for the folder n01"):
        load("imagenet-val", {"size": 16}, [tmp_path])


def test_the_development_kit_numbers_images_of_one_folder(tmp_path):
    for k in range(3):
        write(tmp_path / "imagenet-val" / f"ILSVRC2012_val_0000000{k}.JPEG")
    kit = tmp_path / "ILSVRC2012_devkit_t12" / "data"
    kit.mkdir(parents=True)
    kind = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("gloss", "O"), ("num_children", "O")]
    rows = [(1, "n09", "fox", "", 0), (2, "n02", "tench", "", 0), (3, "n01", "animal", "", 2), (4, "n05", "cat", "", 0)]
    savemat(kit / "meta.mat", {"synsets": np.array(rows, kind)})
    truth = kit / "ILSVRC2012_validation_ground_truth.txt"
    truth.write_text("4\n1\n2\n")
    data = load("imagenet-val", {"size": 16}, [tmp_path])
    assert data.samples.id.tolist() == [f"ILSVRC2012_val_0000000{k}.JPEG" for k in range(3)]
    assert (data.samples.y.tolist(), data.task.classes) == ([1, 2, 0], ("n02", "n05", "n09"))
    truth.write_text("4\n1\n")
    with pytest.raises(UserError, match=r"ground_truth\.txt: expected .* 2 lines, but 3 images"):
        load("imagenet-val", {}, [tmp_path])
    truth.write_text("4\n3\n1")  # 3 is a group of classes
    with pytest.raises(UserError, match=r"ground_truth\.txt: expected a number of a class per image, but found: no 3"):
        load("imagenet-val", {}, [tmp_path])
    (kit / "meta.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(UserError, match=r"meta\.mat: expected the development kit's synsets"):
        load("imagenet-val", {}, [tmp_path])


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(UserError, match=r"none of imagenet-val, .*labels\.csv"):
        load("imagenet-val", {}, [tmp_path])
    with pytest.raises(UserError, match=r"not found: none of .*nowhere"):
        load("imagenet-val", {"path": str(tmp_path / "nowhere")})
    (tmp_path / "imagenet-val" / "one").mkdir(parents=True)
    with pytest.raises(UserError, match=r"found 1 folder\(s\)"):
        load("imagenet-val", {}, [tmp_path])
    (tmp_path / "imagenet-val" / "two").mkdir()
    with pytest.raises(UserError, match="no image in"):
        load("imagenet-val", {}, [tmp_path])


def test_the_real_images(real_data):
    try:
        locate(real_data, ["imagenet_val1000_256px"], "imagenet-val", "")
    except UserError:
        pytest.skip("no ImageNet validation images here")
    data = load("imagenet-val", {"size": 64}, real_data)
    assert len(data.samples) == 1000
    assert sorted(data.samples.y.tolist()) == list(range(1000))
    assert data.task.classes[:2] == ("n01440764", "n01443537")
    assert data.samples.id[0] == "ILSVRC2012_val_00000001.jpg"
    assert list(data.task.classes) == sorted(data.task.classes), "published networks number their outputs so"


def test_a_class_that_no_dataset_reaches_is_refused(tmp_path):
    folder = tmp_path / "imagenet-val"
    folder.mkdir()
    (folder / "labels.csv").write_text("file,class_index\na.png,50000000\n")
    with pytest.raises(UserError, match="the class 50000000, not a number from 0 to 99999"):
        load("imagenet-val", {}, [tmp_path])
    (folder / "labels.csv").write_text("file,class_index\na.png,0.7\n")
    with pytest.raises(UserError, match="found: a class_index that is not a whole number"):
        load("imagenet-val", {}, [tmp_path])
