"""iWildCam: animals before camera traps, with the moment of each photograph.

Beery et al., "The iWildCam 2020 Competition Dataset", 2020, in the layout of WILDS (Koh et al., "WILDS", ICML 2021):
`iwildcam_v2.0/metadata.csv`, which names photographs of the folder `train` with their class and time. WILDS' question
is about other cameras, this one about later photographs; WILDS' split is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from driftline.data import Dataset, locate
from driftline.data.dated_images import dated_images
from driftline.data.source import published
from driftline.registry import register

TABLE = "iwildcam_v2.0/metadata.csv"
ADVICE = "Get iwildcam_v2.0 with WILDS' downloader (pip install wilds), 12 GB, and put the folder there"


@register("dataset", "iwildcam")
@published(
    size="about 200,000 photographs, 25 GB",
    license="Community Data License Agreement - Permissive 1.0",
    where=ADVICE,
    files=(TABLE,),
)
def iwildcam(
    folders: Sequence[Path],
    *,
    size: int = 224,  # height and width of the images in pixels
) -> Dataset:
    """Photographs of camera traps in time order; an id is the file."""
    table = locate(folders, [TABLE], "iwildcam", ADVICE)
    found = dated_images(
        folders, path=str(table), file="filename", label="y", time="datetime", folder="train", size=size
    )
    return replace(found, name="iwildcam")
