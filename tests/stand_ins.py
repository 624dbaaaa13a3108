"""Small stand-ins of the papers' data and weights in their published layouts, and budgets to run full recipes on them.

A budget changes sizes, numbers of updates and seeds, and nothing else.
"""

from __future__ import annotations

import gzip
import json
import pickle
import types
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from driftline import models, registry
from driftline.corruptions.frost import TEXTURES
from driftline.data.cifar import FINE_CLASSES_BY_COARSE
from driftline.data.yearbook import PORTRAITS
from driftline.seeds import Seed
from driftline.spec.settings import Choice, with_defaults
from driftline.streams.test_time.calibration import AccuracyMatrices, write_matrices
from driftline.streams.test_time.schedule import CORRUPTIONS_3D, corruption_names

RANDOM = np.random.default_rng(0)
FINE = sorted(name for line in FINE_CLASSES_BY_COARSE for name in line.split())
WNIDS = [f"n{1440764 + 11 * k:08d}" for k in range(16)]
MRQA = ("SQuAD", "NaturalQuestionsShort", "HotpotQA", "SearchQA", "TriviaQA-web", "NewsQA")
WORDS = ["who", "saw", "the", "sea", "ann", "rome", "at", "night", "?", "."]


def write_data(folder: Path) -> None:
    """Write all stand-ins; `portraits` is a data folder of its own, because yearbook.pkl is preferred to portraits."""
    for write in (
        imagenet,
        sequences,
        test_time_files,
        cifar,
        yearbook,
        portraits,
        fmow,
        texts,
        mrqa,
        checkpoints,
        text_models,
    ):
        write(folder)


def picture(path: Path, size: tuple[int, int] = (36, 32)) -> None:
    """A picture of one color with a gradient, in the format of the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    color, slope = RANDOM.integers(0, 200, 3), np.linspace(0, 50, size[0])[:, None]
    pixels = np.broadcast_to((color + slope[:, None]).astype(np.uint8), (*size, 3))
    Image.fromarray(np.ascontiguousarray(pixels)).save(path, quality=80)


def imagenet(folder: Path) -> None:
    for wnid in WNIDS:
        for k in range(17):
            picture(folder / "imagenet-22k" / wnid / f"{wnid}_{k}.JPEG")
    for n, wnid in enumerate(WNIDS[:10]):
        picture(folder / "imagenet-val" / wnid / f"ILSVRC2012_val_{n:08d}.JPEG", (300, 260))


def sequences(folder: Path) -> None:
    """NED's sequences by label: two of eight upstream classes and two novel ones, which have numbers of their own."""
    novel = {WNIDS[8]: np.int64(2), WNIDS[9]: np.int64(3)}
    for n in range(1, 6):
        inside = folder / "fluid" / f"S{n}"
        inside.mkdir(parents=True)
        np.save(inside / ("all_labels.npy" if n == 2 else f"all_labels{n}.npy"), np.arange(12) % 4)
        np.save(inside / f"class_map{n}.npy", np.array(novel, dtype=object), allow_pickle=True)
    (folder / "fluid" / "imagenet_classes.txt").write_text("\n".join(WNIDS[:8]) + "\n", encoding="utf-8")


def test_time_files(folder: Path) -> None:
    """ImageNet-3DCC, photographs of frost, and accuracies for all pairs of corruptions."""
    for corruption in CORRUPTIONS_3D:
        for n, wnid in enumerate(WNIDS[:2]):
            picture(folder / "ImageNet-3DCC" / corruption / "5" / wnid / f"ILSVRC2012_val_{n:08d}.JPEG", (224, 224))
    (folder / "frost").mkdir()
    for name, known in TEXTURES.items():
        flat = np.full((known.height, known.width, 3), known.mean, np.uint8)
        Image.fromarray(flat).save(folder / "frost" / name, quality=95)
    levels = np.linspace(70, 0, 21)
    accuracy = np.minimum(levels[:, None], levels)
    pairs = permutations(corruption_names("uniform"), 2)
    write_matrices(AccuracyMatrices(dict.fromkeys(pairs, accuracy)), folder / "resnet50-calibration.safetensors")


def pickled(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=2))


def cifar_batch(path: Path, n: int, **labels: list[int]) -> None:
    pickled(path, {"data": RANDOM.integers(0, 256, (n, 3072), dtype=np.uint8), "filenames": ["x"] * n, **labels})


def cifar(folder: Path) -> None:
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        cifar_batch(folder / "cifar-10-batches-py" / name, 200, labels=[k % 10 for k in range(200)])
    fine = [k % 100 for k in range(2500)]
    coarse = {f: k for k, line in enumerate(FINE_CLASSES_BY_COARSE) for f in map(FINE.index, line.split())}
    for part in ("train", "test"):
        path = folder / "cifar-100-python" / part
        cifar_batch(path, len(fine), fine_labels=fine, coarse_labels=[coarse[f] for f in fine])
    names = {"fine_label_names": FINE, "coarse_label_names": [f"group {k}" for k in range(20)]}
    pickled(folder / "cifar-100-python" / "meta", names)


def in_parts(rows: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """A time step of Wild-Time's pickles: a training part, a test part, and both as lists."""
    return {
        0: {name: column[:-2] for name, column in rows.items()},
        1: {name: column[-2:] for name, column in rows.items()},
        2: {name: list(column) for name, column in rows.items()},
    }


def yearbook(folder: Path) -> None:
    content = {}
    for year in range(1962, 1977):
        gray = RANDOM.random((10, 32, 32, 1)).round(2)
        content[year] = in_parts({"images": np.repeat(gray, 3, axis=3), "labels": np.arange(10) % 2})
    pickled(folder / "yearbook.pkl", content)


def portraits(folder: Path) -> None:
    for year in range(1935, 2014, 10):
        for sex in "MF":
            for k in range(15):
                picture(folder / "portraits" / PORTRAITS / sex / f"{year}_Ohio_Cleveland_Central_0-{k}.png", (44, 40))


def fmow(folder: Path) -> None:
    content, n = {}, 0
    for step in range(16):
        rows = np.arange(n, n + 10)
        for row in rows:
            picture(folder / "fmow_v1.1" / "images" / f"rgb_img_{row}.png", (40, 40))
        content[step] = in_parts({"image_idxs": rows, "labels": rows % 62})
        n += 11  # a row of another split lies in between
    pickled(folder / "fmow.pkl", content)


def texts(folder: Path) -> None:
    for name, field, years, classes in (
        ("huffpost", "headline", range(2012, 2019), 11),
        ("arxiv", "title", range(2007, 2023), 172),
    ):
        rows = {year: {field: np.array(sentences(12)), "category": np.arange(12) % classes} for year in years}
        pickled(folder / f"{name}.pkl", {year: in_parts(columns) for year, columns in rows.items()})


def sentences(n: int) -> list[str]:
    return [" ".join(RANDOM.choice(WORDS, 6)) + f" {k}" for k in range(n)]


def mrqa(folder: Path) -> None:
    """MRQA's files: a header, then per line a context with its questions."""
    for part in ("train", "dev"):
        for name in MRQA:
            lines: list[Any] = [{"header": {"dataset": name, "split": part}}]
            for k in range(20):
                asked = [("who", f"{name} {part}"), ("what", f"thing {k}")]
                qas = [{"qid": f"{name}-{part}-{k}-{w}", "question": f"{w} ?", "answers": [a]} for w, a in asked]
                lines.append({"context": f"{name} {part} has thing {k} .", "qas": qas})
            path = folder / "mrqa" / part / f"{name}.jsonl.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            with gzip.open(path, "wt", compresslevel=1) as file:
                file.write("\n".join(map(json.dumps, lines)))


def checkpoints(folder: Path) -> None:
    """Narrow networks in torchvision's and MoCo's files; torchvision's have no counters of batches."""

    def tensors(name: str, outputs: int, width: int) -> dict[str, torch.Tensor]:
        state = models.build(name, (32, 32, 3), outputs, Seed(0), width=width).state_dict()
        named = {key.removeprefix("network."): value for key, value in state.items() if key.startswith("network.")}
        return {key: value for key, value in named.items() if "num_batches" not in key}

    torch.save(tensors("resnet18", 1000, WIDTHS["resnet18"]), folder / "resnet18-f37072fd.pth")
    torch.save(tensors("resnet50", 10, WIDTHS["resnet50"]), folder / "resnet50-0676ba61.pth")
    dense = {old_name(k): v for k, v in tensors("densenet121", 1000, WIDTHS["densenet121"]).items()}
    torch.save(dense, folder / "densenet121-a639ec97.pth")
    encoder = tensors("resnet50", 10, WIDTHS["resnet50"])
    moco = {f"module.encoder_{side}.{key}": value for side in "qk" for key, value in encoder.items() if key[:2] != "fc"}
    head = {"module.encoder_q.fc.0.weight": torch.ones(4, 4), "module.encoder_q.fc.0.bias": torch.ones(4)}
    queue = {"module.queue": torch.ones(128, 8), "module.queue_ptr": torch.zeros(1, dtype=torch.int64)}
    saved = {"epoch": 200, "arch": "resnet50", "state_dict": {**moco, **head, **queue}, "optimizer": {}}
    torch.save(saved, folder / "moco_v2_200ep_pretrain.pth.tar")


def old_name(key: str) -> str:
    """The name of a tensor in torchvision's file of DenseNet-121: norm1 is norm.1 inside a dense layer."""
    for part in ("norm1", "conv1", "norm2", "conv2"):
        if "denselayer" in key:
            key = key.replace(f".{part}.", f".{part[:-1]}.{part[-1]}.")
    return key


def text_models(folder: Path) -> None:
    """Folders of Hugging Face with a BART, a T5 and a DistilBERT."""
    import tokenizers
    import transformers

    marks = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 2}
    bart = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in SIDE.items()}
    t5 = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    sizes = {"dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 2, "max_position_embeddings": 512}
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: k for k, word in enumerate([*special, *WORDS])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    vocab = {"vocab_size": len(vocabulary)}
    networks = {
        "facebook/bart-base": transformers.BartModel(transformers.BartConfig(d_model=8, **vocab, **bart, **marks)),
        "google-t5/t5-base": transformers.T5ForConditionalGeneration(transformers.T5Config(**vocab, **marks | t5)),
        "distilbert/distilbert-base-uncased": transformers.DistilBertForMaskedLM(
            transformers.DistilBertConfig(**vocab, **sizes)
        ),
    }
    names |= {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **names)
    for name, network in networks.items():
        network.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)


SIDE = {"layers": 1, "attention_heads": 2, "ffn_dim": 8}
WIDTHS = {"resnet18": 4, "resnet50": 4, "densenet121": 4, "conv-4": 4, "res-4": 4, "yearbook-cnn": 4}


def timm() -> types.ModuleType:
    """A timm with one small network under every name."""

    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        model: Any = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(12), nn.Linear(12, num_classes))
        model.pretrained_cfg = {"num_classes": num_classes}
        return model

    module: Any = types.ModuleType("timm")
    module.create_model = create_model
    module.get_pretrained_cfg = lambda name: None
    module.data = types.SimpleNamespace(resolve_model_data_config=lambda model: {"mean": (0.5,) * 3, "std": (0.5,) * 3})
    return module  # type: ignore[no-any-return]


OPTIONS: dict[str, dict[str, Any]] = {
    "open-world": {"classes": 4, "pretrain": 2, "upstream_classes": 4, "upstream_each": 6, "upstream_updates": 1}
    | {"upstream_batch": 4, "window": 5, "episodes": 2, "way": 2, "shot": 1, "resamples": 2},
    "refinement": {
        "episodes": 2,
        "queries_per_episode": 4,
        "upstream_set": 4,
        "held_out": 2,
        "upstream_updates": 1,
        "past": 4,
    }
    | {"upstream_batch": 2, "resamples": 2},
    "seq-to-final": {"sizes": [100] * 4, "test": 100, "lr": [1e-3], "weight_decay": [1e-4], "dropout": [0.0]}
    | {"adjacent": [0.1], "fisher": [0.1], "epochs": 1, "batch": 50, "resamples": 2, "fisher_examples": 2},
    "test-time": {"images": 8, "images_per_point": 4, "batch": 4, "resamples": 2},
    "timeline": {"resamples": 2},
}
SETTINGS = {
    **{"updates": 1, "epochs": 1, "batch": 4, "n_candidates": 2, "train_every": 6, "warmup_labels": 4},
    **{"warmup_every": 2, "imprint_only_labels": 4, "fisher_images": 4},
}
DATA: dict[str, dict[str, Any]] = {
    **{"image-folders": {"size": 32}, "imagenet-val": {"size": 48}, "fmow": {"size": 32, "first": 2010}},
    **{"huffpost": {"first": 2014}, "arxiv": {"first": 2015, "last": 2018}},
}
EPISODES = {"way": 2, "shot": 1, "query": 1}
MODELS = {
    **{name: {"width": width} for name, width in WIDTHS.items()},
    "seq2seq": {"max_input_tokens": 16, "max_answer_tokens": 2},
    "minilm": {"max_tokens": 16},
}


def shrunk(content: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with the budget of a test: its second method, one seed, small sizes."""
    benchmark, model = content["benchmark"], Choice.model_validate(content["model"])
    given = registry.get("benchmark", benchmark).options(**content[benchmark]).model_dump()
    in_time = given.get("shifts") == "time"  # then the data decide on the sizes
    used = {k: v for k, v in OPTIONS[benchmark].items() if given[k] != 0 and not (in_time and k in ("sizes", "test"))}
    selection = content.get("selection")
    grid = {"seeds": 1, "trials": 1, "grid": {"epochs": [1, 2]}}
    data = Choice.model_validate(content["data"])
    small = {
        "data": {"name": data.name, **data.settings, **DATA.get(data.name, {})},
        "model": {"name": model.name, **model.settings, **MODELS.get(model.name, {})},
        "methods": [shrunk_method(method, grid["grid"] if selection else {}) for method in content["methods"][:2][-1:]],
        "seeds": content["seeds"] if isinstance(content["seeds"], list) else 1,
        "device": "sim",
        "selection": {**selection, **grid} if selection else None,
        benchmark: {**content[benchmark], **used},
    }
    return {**content, **small}


def shrunk_method(method: Any, selected: Mapping[str, Any]) -> dict[str, Any]:
    choice = Choice.model_validate(method)
    defaults = with_defaults("method", choice).settings
    less = {key: value for key, value in SETTINGS.items() if (defaults.get(key) or 0) > value and key not in selected}
    pretraining = Choice.model_validate(defaults.get("pretraining", "supervised"))
    if pretraining.name not in ("supervised", "moco"):
        more = {"meta_updates": 1} if pretraining.name == "meta-baseline" else {}
        less["pretraining"] = {"name": pretraining.name, **pretraining.settings, **EPISODES, **more}
    return {"name": choice.name, **choice.settings, **less}
