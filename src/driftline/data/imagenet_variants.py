"""Other pictures of ImageNet's classes: renditions, sketches and a second test set.

ImageNet-R, renditions of 200 classes: Hendrycks et al., "The Many Faces of Robustness", ICCV 2021. ImageNet-Sketch:
Wang et al., "Learning Robust Global Representations by Penalizing Local Predictive Power", NeurIPS 2019. ImageNet-V2:
Recht et al., "Do ImageNet Classifiers Generalize to ImageNet?", ICML 2019, whose folders are numbers.

They are read as `imagenet-val` is. With `imagenet_classes.txt` (a WordNet id per line) in the folder or beside it, the
classes of ImageNet-R are numbered among all 1,000, as a published network needs it; without it, among its own 200.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from driftline.data import Dataset, locate
from driftline.data.imagenet_val import imagenet_val
from driftline.data.source import NOT_STATED, published
from driftline.registry import register

R, SKETCH, V2 = "imagenet-r", "sketch", "imagenetv2"
ADVICE = {
    R: "Get imagenet-r.tar from github.com/hendrycks/imagenet-r and unpack it there",
    SKETCH: "Get ImageNet-Sketch from github.com/HaohanWang/ImageNet-Sketch and put its folder sketch there",
    V2: "Get the archives from github.com/modestyachts/ImageNetV2 and unpack them there",
}
V2_FOLDERS = {
    name: [f"imagenetv2-{name}-format-val", f"imagenetv2-{name}"]
    for name in ("matched-frequency", "threshold0.7", "top-images")
}


@register("dataset", "imagenet-r")
@published(size="30,000 images of 200 classes", license=NOT_STATED, where=ADVICE[R], files=(R,))
def imagenet_r(
    folders: Sequence[Path],
    *,
    size: int = 224,  # height and width of the images in pixels
    resize: int | None = 256,  # resize the short side to this and cut out the center
) -> Dataset:
    """Renditions: paintings, toys, tattoos and so on; an id is the file as listed."""
    return _read(folders, "imagenet-r", [R], ADVICE[R], size, resize)


@register("dataset", "imagenet-sketch")
@published(size="50,000 images of 1,000 classes", license=NOT_STATED, where=ADVICE[SKETCH], files=(SKETCH,))
def imagenet_sketch(
    folders: Sequence[Path],
    *,
    size: int = 224,  # height and width of the images in pixels
    resize: int | None = 256,  # resize the short side to this and cut out the center
) -> Dataset:
    """Black and white sketches; an id is the file as listed."""
    return _read(folders, "imagenet-sketch", [SKETCH], ADVICE[SKETCH], size, resize)


@register("dataset", "imagenet-v2")
@published(
    size="three sets of 10,000 images of 1,000 classes",
    license=NOT_STATED,
    where=ADVICE[V2],
    files=[name for names in V2_FOLDERS.values() for name in names],
)
def imagenet_v2(
    folders: Sequence[Path],
    *,
    sampling: Literal["matched-frequency", "threshold0.7", "top-images"] = "matched-frequency",  # the set
    size: int = 224,  # height and width of the images in pixels
    resize: int | None = 256,  # resize the short side to this and cut out the center
) -> Dataset:
    """A second test set, made as the first was; an id is the file as listed."""
    return _read(folders, "imagenet-v2", V2_FOLDERS[sampling], ADVICE[V2], size, resize)


def _read(
    folders: Sequence[Path], name: str, names: Sequence[str], advice: str, size: int, resize: int | None
) -> Dataset:
    folder = locate(folders, names, name, advice)
    return replace(imagenet_val(folders, path=str(folder), size=size, resize=resize), name=name)
