"""The corruptions of ImageNet-C and CIFAR-C with continuous severity, as CCC uses them: 15, and 4 for validation.

One file per corruption or close family. What the original does by accident is kept, to be comparable, and is named
where it happens. Nothing heavy is imported before the first image is corrupted.
"""

from pathlib import Path

from driftline.corruptions.corrupt import HOLDOUT, NAMES, corrupt
from driftline.corruptions.severity import Parameters, Table, parameters, which_table
from driftline.io.user_files import resolve

__all__ = ["HOLDOUT", "NAMES", "Parameters", "Table", "corrupt", "frost_source", "parameters", "which_table"]


def frost_source(folder: Path | str | None = None) -> str:
    """Return a description of the frost textures for a protocol card.

    >>> frost_source()
    'procedural textures, not paper-comparable'
    """
    if folder is None:
        return "procedural textures, not paper-comparable"
    from driftline.corruptions.frost import textures_hash, textures_in

    pixels = textures_hash(textures_in(resolve(folder)))
    return f"photographs of ImageNet-C, checked by name, size, color and the equality of frost2 and frost3; {pixels}"
