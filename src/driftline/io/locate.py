"""Find data files and weights, and say which file an error comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from driftline.errors import DamagedFile, UserError
from driftline.io.user_files import resolve

ENV_VARIABLE = "DRIFTLINE_DATA"
"""The environment variable that names the data folder."""
CONFIG = "config.json"
PATH_HINT = "Give a path: --set data.path=..."


def data_folders(folder: Path | None = None) -> list[Path]:
    """Return the folders to search for data: this one, or else `$DRIFTLINE_DATA` and the user's cache folder."""
    if folder is not None:
        return [folder]
    from platformdirs import user_cache_path

    named = os.environ.get(ENV_VARIABLE)
    return [*([Path(named)] if named else []), user_cache_path("driftline")]


@contextmanager
def using_data_folder(folder: Path | None) -> Iterator[None]:
    """Set `$DRIFTLINE_DATA` to this folder: files such as weights are found in it by their bare names too.

    Worker processes that are started meanwhile look there as well. None changes nothing.
    """
    before = os.environ.get(ENV_VARIABLE)
    if folder is not None:
        os.environ[ENV_VARIABLE] = str(folder.absolute())
    try:
        yield
    finally:
        if folder is not None:
            os.environ.pop(ENV_VARIABLE)
            os.environ.update({} if before is None else {ENV_VARIABLE: before})


def weights_file(name: str) -> Path | None:
    """Return the file itself, or the one of this name in a data folder or in `weights` there; None if there is none."""
    path = resolve(name)
    places = [path, *(folder / part / path for folder in data_folders() for part in ("weights", "."))]
    return next((place for place in places if os.path.isfile(place)), None)  # False for a name that is too long


def weights_folder(name: str) -> Path | None:
    """Return the folder itself, or the one of this name in a data folder or in `weights` there, with a `config.json`.

    Every network of Hugging Face has one. None if there is no such folder.
    """
    path = resolve(name)
    places = (folder / part / path for folder in data_folders() for part in ("weights", "."))
    return path if os.path.isdir(path) else next((one for one in places if os.path.isfile(one / CONFIG)), None)


def locate(folders: Sequence[Path], names: Sequence[str], dataset: str, advice: str) -> Path:
    """Return the first of these files or folders that exists, or raise an error that lists the folders."""
    for folder in folders:
        for name in names:
            if os.path.exists(folder / name):  # unlike Path.exists, False without permission
                return folder / name
    looked = ", ".join(str(folder) for folder in folders)
    raise UserError(f"dataset '{dataset}' not found: none of {', '.join(names)} in {looked}. {advice}")


def locate_user_path(folders: Sequence[Path], path: str, dataset: str, advice: str = PATH_HINT) -> Path:
    """Return the file or folder that a user named: a path, or a name in a data folder."""
    expanded = Path(os.path.expanduser(path))  # unlike Path.expanduser, it leaves unknown users alone
    return expanded if os.path.exists(expanded) else locate(folders, [path], dataset, advice)


@contextmanager
def file_errors(path: Path, expected: str) -> Iterator[None]:
    """Turn exceptions while a file is parsed into errors that name the file and what was expected."""
    try:
        yield
    except DamagedFile as damage:  # no run makes a user's own file again
        raise UserError(f"cannot read {path}: expected {expected}, but {damage.reason}") from damage
    except UserError:
        raise
    except Exception as error:  # parsers of broken files raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = f"no {reason}" if isinstance(error, KeyError) else reason
        raise UserError(f"cannot read {path}: expected {expected}, but found: {reason}") from error
