"""Parameters of each corruption at any severity from 0 to 5.

ImageNet-C (Hendrycks and Dietterich) gives parameters at severities 1 to 5, and CCC (Press et al., "RDumb") joins them
by straight lines, each parameter by itself, with a further row for severity 0. Severity 0 itself leaves an image as it
is: its row is only where the line to severity 1 begins. Small images have the rows of CIFAR-C; CCC has none for
severity 0 there, nor for the holdout corruptions, so those are ours: the weakest form, written out below.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from driftline.errors import UserError

Table = Literal["auto", "imagenet", "cifar"]
Parameters = dict[str, float]
Rows = dict[str, dict[str, tuple[float, ...]]]

MIN_SIDE, IMAGENET_MIN_SIDE = 32, 64
"""The smallest side of an image in pixels, and the side from which on the parameters are those of ImageNet-C."""
MAX_SEVERITY = 5

IMAGENET: Rows = {
    "gaussian_noise": {"sigma": (0, 0.08, 0.12, 0.18, 0.26, 0.38)},
    # The inverse is what is interpolated: 3.5 gives lambda 7.06, not 8.5.
    "shot_noise": {"inv_lambda": (0, 1 / 60, 1 / 25, 1 / 12, 1 / 5, 1 / 3)},
    "impulse_noise": {"amount": (0, 0.03, 0.06, 0.09, 0.17, 0.27)},
    "defocus_blur": {"radius": (0, 3, 4, 6, 8, 10), "alias_sigma": (0, 0.1, 0.5, 0.5, 0.5, 0.5)},
    "glass_blur": {
        "sigma": (0, 0.7, 0.9, 1, 1.1, 1.5),
        "max_delta": (0, 1, 2, 2, 3, 4),
        "iters": (0, 2, 1, 3, 2, 2),  # so it falls and rises
    },
    "motion_blur": {"radius": (0, 10, 15, 15, 15, 20), "sigma": (0, 3, 5, 8, 12, 15)},
    "zoom_blur": {
        "start": (1, 1, 1, 1, 1, 1),
        "stop": (1, 1.11, 1.16, 1.21, 1.26, 1.31),
        "step": (0.01, 0.01, 0.01, 0.02, 0.02, 0.03),
    },
    "snow": {
        "loc": (0.1, 0.1, 0.2, 0.55, 0.55, 0.55),
        "scale": (0.3, 0.3, 0.3, 0.3, 0.3, 0.3),
        "zoom": (3, 3, 2, 4, 4.5, 2.5),
        "thresh": (1, 0.5, 0.5, 0.9, 0.85, 0.85),
        "mb_radius": (10, 10, 12, 12, 12, 12),
        "mb_sigma": (4, 4, 4, 8, 8, 12),
        "blend": (1, 0.8, 0.7, 0.7, 0.65, 0.55),
    },
    "frost": {"img_w": (1, 1, 0.8, 0.7, 0.65, 0.6), "frost_w": (0, 0.4, 0.6, 0.7, 0.7, 0.75)},
    "fog": {"strength": (0, 1.5, 2, 2.5, 2.5, 3), "wibbledecay": (2, 2, 2, 1.7, 1.5, 1.4)},
    "brightness": {"dV": (0, 0.1, 0.2, 0.3, 0.4, 0.5)},
    "contrast": {"factor": (1, 0.4, 0.3, 0.2, 0.1, 0.05)},
    # Pixels of an image of 224; 244 times 2, .7, .1 and so on, a misprint of 224 that everyone has kept.
    "elastic": {
        "alpha": (0, 488, 488, 12.2, 17.08, 29.28),
        "sigma": (999, 170.8, 19.52, 2.44, 2.44, 2.44),
        "affine": (0, 24.4, 48.8, 4.88, 4.88, 4.88),
    },
    "pixelate": {"scale": (1, 0.6, 0.5, 0.4, 0.3, 0.25)},
    "jpeg": {"quality": (85, 25, 18, 15, 10, 7)},
    "speckle_noise": {"sigma": (0, 0.15, 0.2, 0.35, 0.45, 0.6)},
    "gaussian_blur": {"sigma": (0, 1, 2, 3, 4, 6)},
    "spatter": {
        "loc": (0.65, 0.65, 0.65, 0.65, 0.65, 0.67),
        "scale": (0.3, 0.3, 0.3, 0.3, 0.3, 0.4),
        "sigma": (4, 4, 3, 2, 1, 1),
        "thresh": (0.69, 0.69, 0.68, 0.68, 0.65, 0.65),
        "strength": (0, 0.6, 0.6, 0.5, 1.5, 1.5),
        "mud": (0, 0, 0, 0, 1, 1),
    },
    "saturate": {"factor": (1, 0.3, 0.1, 2, 5, 20), "offset": (0, 0, 0, 0, 0.1, 0.2)},
}

CIFAR: Rows = {
    "gaussian_noise": {"sigma": (0, 0.04, 0.06, 0.08, 0.09, 0.1)},
    "shot_noise": {"inv_lambda": (0, 1 / 500, 1 / 250, 1 / 100, 1 / 75, 1 / 50)},
    "impulse_noise": {"amount": (0, 0.01, 0.02, 0.03, 0.05, 0.07)},
    "defocus_blur": {"radius": (0, 0.3, 0.4, 0.5, 1, 1.5), "alias_sigma": (0, 0.4, 0.5, 0.6, 0.2, 0.1)},
    "glass_blur": {
        "sigma": (0, 0.05, 0.25, 0.4, 0.25, 0.4),
        "max_delta": (0, 1, 1, 1, 1, 1),
        "iters": (0, 1, 1, 1, 2, 2),
    },
    "motion_blur": {"radius": (0, 6, 6, 6, 8, 9), "sigma": (0, 1, 1.5, 2, 2, 2.5)},
    "zoom_blur": {
        "start": (1, 1, 1, 1, 1, 1),
        "stop": (1, 1.06, 1.11, 1.16, 1.21, 1.26),
        "step": (0.01, 0.01, 0.01, 0.01, 0.01, 0.01),
    },
    "snow": {
        "loc": (0.1, 0.1, 0.1, 0.15, 0.25, 0.3),
        "scale": (0.2, 0.2, 0.2, 0.3, 0.3, 0.3),
        "zoom": (1, 1, 1, 1.75, 2.25, 1.25),
        "thresh": (1, 0.6, 0.5, 0.55, 0.6, 0.65),
        "mb_radius": (8, 8, 10, 10, 12, 14),
        "mb_sigma": (3, 3, 4, 4, 6, 12),
        "blend": (1, 0.95, 0.9, 0.9, 0.85, 0.8),
    },
    "frost": {
        "img_w": (1, 1, 1, 0.9, 0.85, 0.75),
        "frost_w": (0, 0.2, 0.3, 0.4, 0.4, 0.45),
        "texture": (0.2, 0.2, 0.2, 0.2, 0.2, 0.2),  # the scale of the photographs
    },
    "fog": {"strength": (0, 0.2, 0.5, 0.75, 1, 1.5), "wibbledecay": (3, 3, 3, 2.5, 2, 1.75)},
    "brightness": {"dV": (0, 0.05, 0.1, 0.15, 0.2, 0.3)},
    "contrast": {"factor": (1, 0.75, 0.5, 0.4, 0.3, 0.15)},
    # Pixels of an image of 32. At severity 1 there is no field of displacements, so there is none below it.
    "elastic": {
        "alpha": (0, 0, 1.6, 2.56, 3.2, 3.2),
        "sigma": (0, 0, 6.4, 1.92, 1.28, 0.96),
        "affine": (0, 2.56, 2.24, 1.92, 1.6, 0.96),
    },
    "pixelate": {"scale": (1, 0.95, 0.9, 0.85, 0.75, 0.65)},
    "jpeg": {"quality": (100, 80, 65, 58, 50, 40)},  # CIFAR is not stored as JPEG: nothing is lost at first
    "speckle_noise": {"sigma": (0, 0.06, 0.1, 0.12, 0.16, 0.2)},
    "gaussian_blur": {"sigma": (0, 0.4, 0.6, 0.7, 0.8, 1)},
    "spatter": {
        "loc": (0.62, 0.62, 0.65, 0.65, 0.65, 0.65),
        "scale": (0.1, 0.1, 0.1, 0.3, 0.1, 0.1),
        "sigma": (0.7, 0.7, 0.8, 1, 0.7, 0.5),
        "thresh": (0.7, 0.7, 0.7, 0.69, 0.69, 0.68),
        "strength": (0, 0.5, 0.5, 0.5, 0.6, 0.6),
        "mud": (0, 0, 0, 0, 1, 1),
    },
    "saturate": {"factor": (1, 0.3, 0.1, 1.5, 2, 2.5), "offset": (0, 0, 0, 0, 0.1, 0.2)},
}

TABLES: dict[str, tuple[Rows, int]] = {"imagenet": (IMAGENET, 224), "cifar": (CIFAR, 32)}
"""The rows of each table, and the side of the images for which its lengths in pixels are written."""


def which_table(side: int, table: Table) -> str:
    """Return the name of the table for images with this shorter side."""
    if table == "auto":
        return "imagenet" if side >= IMAGENET_MIN_SIDE else "cifar"
    if table not in TABLES:
        raise UserError(f"table is 'auto', 'imagenet' or 'cifar', not '{table}'")
    return table


def parameters(name: str, severity: float, side: int = 224, table: Table = "auto") -> Parameters:
    """Return the parameters of a corruption at a severity, for images with this shorter side.

    >>> parameters("gaussian_noise", 2.5)
    {'sigma': 0.15}
    >>> round(1 / parameters("shot_noise", 3.5)["inv_lambda"], 2)
    7.06
    """
    rows, usual = TABLES[which_table(side, table)]
    found = {key: float(np.interp(severity, range(6), values)) for key, values in rows[name].items()}
    if name == "elastic":  # the one corruption whose definition grows with the image
        found = {key: value * (side / usual) for key, value in found.items()}
    return found
