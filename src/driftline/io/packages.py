"""Import packages that only some models or datasets need: separate errors for missing, incomplete and broken ones."""

from __future__ import annotations

import importlib
from types import ModuleType

from driftline.errors import UserError


def import_package(name: str, needed_by: str) -> ModuleType:
    """Return a package. Raise ModuleNotFoundError if it is not installed, and UserError if it is broken."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise
        raise UserError(
            f"{needed_by} needs {name}, which is installed but needs {error.name}, which is not: "
            f"pip install {str(error.name).partition('.')[0]}"
        ) from error
    except Exception as error:  # a package that was built for another version of torch fails in many ways
        reason = " ".join(str(error).split())[:300]
        raise UserError(
            f"{needed_by} needs {name}, which is installed but broken: {type(error).__name__}: {reason}"
        ) from error
