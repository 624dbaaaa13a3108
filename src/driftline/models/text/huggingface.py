"""Weights and tokenizers of Hugging Face models, from a folder or the hub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftline.data import weights_folder
from driftline.errors import UserError
from driftline.io.user_files import resolve
from driftline.models.text.tokenizer import Tokenizer, from_huggingface, optional_import
from driftline.models.weights import LoadedWeights, count_by_start, set_loaded
from driftline.types import Head, JsonObject, Network

WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
LOAD_OPTIONS = {  # weights of another shape are reported, and refused by us
    **{"use_safetensors": True, "attn_implementation": "eager", "trust_remote_code": False},
    **{"output_loading_info": True, "ignore_mismatched_sizes": True},
}
TOKENIZER_OPTIONS = {"use_fast": True, "trust_remote_code": False}  # else it asks whether to run code in the folder
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "spiece.model")


def load_pretrained(weights: str) -> tuple[Any, Tokenizer]:
    """Return the network and the vocabulary in a folder, or under a name on the hub; never from a pickle."""
    transformers = optional_import("transformers", "model 'seq2seq'")
    with silenced(transformers.utils.logging):
        folder = model_folder(weights, "seq2seq")
        check_complete(folder, weights, "seq2seq", TOKENIZER_FILES)
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **TOKENIZER_OPTIONS)
            network, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(folder), **LOAD_OPTIONS)
        except Exception as error:  # a broken file makes its parser fail in any way there is
            way = download_hint(hub_name(weights), str(folder))
            raise UserError(f"model 'seq2seq' cannot load {folder}: {short_message(error)}. {way}") from error
    check_loaded("seq2seq", folder, report)
    set_loaded(network, loaded_from(weights, network, report))
    network.generation_config.max_length = None  # the maximum length is passed with each call
    return network, from_huggingface(tokenizer)


def check_loaded(model: str, folder: Path, report: JsonObject, unused: str | None = None) -> None:
    """Refuse weights that are partly random; those with `unused` in their name are not used."""
    unlike = [key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]]
    lacking = sorted(key for key in (*report["missing_keys"], *unlike) if unused is None or unused not in key)
    if lacking:
        raise UserError(f"model '{model}': the weights in {folder} lack {lacking[0]}, and {len(lacking)} in all")


def loaded_from(
    weights: str, network: Network, report: JsonObject, head: Head = "keep", initialized: Sequence[str] = ()
) -> LoadedWeights:
    """Return what a network took from a folder, by the report of Hugging Face's loader."""
    lacking = {*report["missing_keys"], *initialized}
    loaded = sum(name not in lacking for name in network.state_dict())
    return LoadedWeights(weights, head, loaded, "", "", count_by_start(report["unexpected_keys"]), list(initialized))


def model_folder(weights: str, model: str) -> Path:
    """Return the folder, or the local folder of a name on the hub; download it if it is missing."""
    if found := weights_folder(weights):
        return found
    folder = resolve(weights)
    if folder.is_absolute() or weights.startswith((".", "~")) or weights.count("/") > 1:
        raise UserError(f"model '{model}': there is no folder {folder}. {download_hint('NAME', str(folder))}")
    hub = optional_import("huggingface_hub", f"model '{model}'")
    try:
        return Path(hub.snapshot_download(weights, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model"]))
    except (OSError, ValueError) as error:
        way = download_hint(weights, "FOLDER")
        raise UserError(f"model '{model}' cannot fetch {weights}: {short_message(error)}. {way}") from error


def short_message(error: Exception) -> str:
    """Return the error's message on one line of at most 300 characters."""
    message = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
    return f"no {message}" if isinstance(error, KeyError) else message


@contextmanager
def silenced(logging: Any) -> Iterator[None]:
    """Suppress the library's progress bars and warnings."""
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def check_complete(folder: Path, weights: str, model: str, tokenizer_files: tuple[str, ...]) -> None:
    """Refuse a folder that lacks a file."""
    for names in (("config.json",), WEIGHT_FILES, tokenizer_files):
        if not any((folder / name).exists() for name in names):
            pickled = sorted(path.name for path in folder.glob("*.bin"))
            why = f" ({pickled[0]} is a pickle, which is never loaded)" if names is WEIGHT_FILES and pickled else ""
            missing = " or ".join(names)
            way = download_hint(hub_name(weights), str(folder))
            raise UserError(f"model '{model}': {missing} is missing in {folder}{why}. {way}")


def hub_name(weights: str) -> str:
    """Return the name of these weights on the hub, if it is known."""
    return "NAME" if Path(weights).is_dir() else weights


def download_hint(name: str, folder: str) -> str:
    """Return advice for missing or damaged files."""
    return f"Get it with `hf download {name} --local-dir {folder}` and give that folder as the option weights"
