"""Weights and words of Hugging Face models, from a folder or the hub; what is missing is named, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftline.errors import UserError
from driftline.models.words import Words, loaded, package

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
WORDS = ("tokenizer.json", "vocab.json", "spiece.model")


def load(weights: str) -> tuple[Any, Words]:
    """The network and the vocabulary in a folder, or under a name on the hub; never from a pickle."""
    transformers = package("transformers", "model 'seq2seq'")
    with _quietly(transformers.utils.logging):
        folder = _folder(weights)
        _must_be_whole(folder, weights)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True)
            network = transformers.AutoModelForSeq2SeqLM.from_pretrained(
                str(folder), use_safetensors=True, attn_implementation="eager"
            )
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            raise UserError(f"model 'seq2seq' cannot load {folder}: {_reason(error)}") from error
    network.generation_config.max_length = None  # how long an answer may be is said with each one
    return network, loaded(tokenizer)


def _folder(weights: str) -> Path:
    """The folder itself, or where the files under a name on the hub are kept; fetched if they are not there yet."""
    folder = Path(weights).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or weights.startswith((".", "~")) or weights.count("/") > 1:
        raise UserError(f"model 'seq2seq': there is no folder {folder}. {_how_to_get('NAME', str(folder))}")
    hub = package("huggingface_hub", "model 'seq2seq'")
    try:
        return Path(hub.snapshot_download(weights, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"]))
    except (OSError, ValueError) as error:
        way = _how_to_get(weights, "FOLDER")
        raise UserError(f"model 'seq2seq' cannot fetch {weights}: {_reason(error)}. {way}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")


@contextmanager
def _quietly(logging: Any) -> Iterator[None]:
    """Without progress bars, which would run through ours."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _must_be_whole(folder: Path, weights: str) -> None:
    for names in (("config.json",), WEIGHTS, WORDS):
        if not any((folder / name).exists() for name in names):
            pickled = sorted(path.name for path in folder.glob("*.bin"))
            why = f" ({pickled[0]} is a pickle, which is never loaded)" if names is WEIGHTS and pickled else ""
            missing = " or ".join(names)
            way = _how_to_get("NAME" if Path(weights).is_dir() else weights, str(folder))
            raise UserError(f"model 'seq2seq': {missing} is missing in {folder}{why}. {way}")


def _how_to_get(name: str, folder: str) -> str:
    return f"Get it with `hf download {name} --local-dir {folder}` and give that folder as the option weights"
