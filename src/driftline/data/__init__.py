"""Datasets: one file each, which reads the dataset's standard files.

A dataset is a function `(folders, **options) -> Dataset`, registered under its name. Its keyword-only
parameters are its options: on the command line `--set data.<option>=<value>`.
"""

from driftline.data.adapters import factory
from driftline.data.base import Dataset, numbered_names, validate
from driftline.data.loading import load
from driftline.io.locate import (
    data_folders,
    file_errors,
    locate,
    locate_user_path,
    using_data_folder,
    weights_file,
    weights_folder,
)

__all__ = [
    "Dataset",
    "data_folders",
    "factory",
    "file_errors",
    "load",
    "locate",
    "locate_user_path",
    "numbered_names",
    "using_data_folder",
    "validate",
    "weights_file",
    "weights_folder",
]
