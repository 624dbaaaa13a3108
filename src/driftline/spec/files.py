"""The files that a job names: a user's code, weights, textures, matrices.

Files of the dataset's settings are not among them: the dataset's fingerprint covers their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from driftline.data import weights_file, weights_folder
from driftline.io import user_files
from driftline.io.locate import CONFIG
from driftline.spec.job import Job
from driftline.spec.settings import Choice


def named_files(job: Job) -> dict[str, Path]:
    """Return the existing files and folders that a job names, by the name that the user wrote."""
    candidates = job.search.candidates if job.search else ()
    return files_of(job.data.name, (job.model, job.method, *job.reveal.rules), [job.options, *candidates])


def files_of(data: str, choices: Iterable[Choice], settings: object) -> dict[str, Path]:
    """Return the files that these choices and settings name."""
    choices = list(choices)
    texts = [text for text in user_files.iter_strings([settings, *(choice.settings for choice in choices)]) if text]
    names = [data, *(choice.name for choice in choices), *texts]
    code = {source: user_files.resolve(source) for name in names for source in user_files.source_files(name)}
    return {**code, **dict(_paths(texts))}


def _paths(texts: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield texts that name a file or the folder of a network, or are the path of another folder."""
    for text in texts:
        path = weights_file(text) or weights_folder(text)
        if path is not None and (path.is_file() or "/" in text or (path / CONFIG).is_file()):
            yield text, path
