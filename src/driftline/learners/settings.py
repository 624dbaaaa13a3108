"""Types for the hyper-parameters of methods, with their limits, and the check of a method's settings.

A command line or a recipe is checked before anything runs; a method that is made in code, when it is prepared.
"""

from __future__ import annotations

import dataclasses
import typing
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from driftline.errors import UserError

Count = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
CountOrZero = Annotated[int, Field(ge=0)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]
OptimizerName = Literal[
    "adam",
    "adamw",
    "amsgrad",
    "sgd",
    "adadelta",
    "adafactor",
    "adagrad",
    "adamax",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
]
"""torch's optimizers, and AMSGrad (`driftline.training.optimizers`)."""

Augmentation = Literal["none", "crop-flip", "pad-crop-flip"]
"""Random changes of training images (`driftline.training.augmentations`)."""


def check_settings(method: object) -> None:
    """Refuse a method with a setting outside its limits."""
    kind: Any = type(method)
    schema = _schema(kind)
    given = {name: getattr(method, name) for name in schema.model_fields}
    try:
        schema.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        setting, reason = first["loc"][0], first["msg"].removeprefix("Input ")
        raise UserError(f"{type(method).__name__}: {setting}={first['input']}: {reason}") from None


@lru_cache
def _schema(kind: Any) -> type[BaseModel]:
    """Return a pydantic model of a dataclass's fields."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    types = typing.get_type_hints(kind, include_extras=True) if fields else {}
    config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=())
    columns: dict[str, Any] = {field.name: (types[field.name], ...) for field in fields}
    return create_model(kind.__name__, __config__=config, **columns)
