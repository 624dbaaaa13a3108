"""Weights and words of Hugging Face models, from a folder or the hub; what is missing is named, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftline.errors import UserError
from driftline.handed import file_of
from driftline.models.words import Words, loaded, package

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
HOW = {  # weights of another shape are reported, and refused by us
    **{"use_safetensors": True, "attn_implementation": "eager"},
    **{"output_loading_info": True, "ignore_mismatched_sizes": True},
}
WORDS = ("tokenizer.json", "vocab.json", "spiece.model")


def load(weights: str) -> tuple[Any, Words]:
    """The network and the vocabulary in a folder, or under a name on the hub; never from a pickle."""
    transformers = package("transformers", "model 'seq2seq'")
    with quietly(transformers.utils.logging):
        folder = _folder(weights)
        _must_be_whole(folder, weights)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True)
            network, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(folder), **HOW)
        except Exception as error:  # a broken file makes its parser fail in any way there is
            way = how_to_get(name_of(weights), str(folder))
            raise UserError(f"model 'seq2seq' cannot load {folder}: {reason(error)}. {way}") from error
    must_be_loaded("seq2seq", folder, report)
    network.generation_config.max_length = None  # how long an answer may be is said with each one
    return network, loaded(tokenizer)


def must_be_loaded(model: str, folder: Path, report: dict[str, Any], idle: str | None = None) -> None:
    """Refuse weights of which some would be random; those with `idle` in their name are not used."""
    unlike = [key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]]
    lacking = sorted(key for key in (*report["missing_keys"], *unlike) if idle is None or idle not in key)
    if lacking:
        raise UserError(f"model '{model}': the weights in {folder} lack {lacking[0]}, and {len(lacking)} in all")


def _folder(weights: str) -> Path:
    """The folder itself, or where the files under a name on the hub are kept; fetched if they are not there yet."""
    folder = file_of(weights)
    if folder.is_dir():
        return folder
    if folder.is_absolute() or weights.startswith((".", "~")) or weights.count("/") > 1:
        raise UserError(f"model 'seq2seq': there is no folder {folder}. {how_to_get('NAME', str(folder))}")
    hub = package("huggingface_hub", "model 'seq2seq'")
    try:
        return Path(hub.snapshot_download(weights, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"]))
    except (OSError, ValueError) as error:
        way = how_to_get(weights, "FOLDER")
        raise UserError(f"model 'seq2seq' cannot fetch {weights}: {reason(error)}. {way}") from error


def reason(error: Exception) -> str:
    """What an error says, in a line of bearable length."""
    said = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
    return f"no {said}" if isinstance(error, KeyError) else said


@contextmanager
def quietly(logging: Any) -> Iterator[None]:
    """Without progress bars, which would run through ours, and reports of what we refuse in a sentence."""
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def _must_be_whole(folder: Path, weights: str) -> None:
    for names in (("config.json",), WEIGHTS, WORDS):
        if not any((folder / name).exists() for name in names):
            pickled = sorted(path.name for path in folder.glob("*.bin"))
            why = f" ({pickled[0]} is a pickle, which is never loaded)" if names is WEIGHTS and pickled else ""
            missing = " or ".join(names)
            way = how_to_get(name_of(weights), str(folder))
            raise UserError(f"model 'seq2seq': {missing} is missing in {folder}{why}. {way}")


def name_of(weights: str) -> str:
    """What the hub calls these weights, as far as that is known."""
    return "NAME" if Path(weights).is_dir() else weights


def how_to_get(name: str, folder: str) -> str:
    """The way out where files are missing or broken."""
    return f"Get it with `hf download {name} --local-dir {folder}` and give that folder as the option weights"
