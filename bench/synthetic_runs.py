"""Stores of synthetic runs: files as a finished run has them, with scores that are made up.

Four settings of each of five datasets: evaluated over time, on a stream, at the end of a sequence, on queries; ten
methods each, and as many seeds as it takes. A run has from 2 to 485 scores, 166 on average.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftline import registry
from driftline.benchmarks.test_time.benchmark import Options as StreamOptions
from driftline.io.checksums import CHECKSUM_FIELD
from driftline.record.card import CARD, Card
from driftline.record.run import RUNTIME
from driftline.store.store import Store

METHODS = ("frozen", "erm", "erm-all", "ft", "er", "ewc", "l2-reg", "mir", "swa", "oracle")
DATASETS = ("digits", "yearbook", "news", "portraits", "arxiv")
PERIODS = [str(1990 + k) for k in range(20)]
WINDOWS = 50
COLUMNS = ["metric", "stat", "time", "tau", "value", "low", "high", "n", "unit"]
TYPES = [pa.string()] * 4 + [pa.float64()] * 3 + [pa.int64(), pa.string()]
SCORES = pa.schema(list(zip(COLUMNS, TYPES, strict=True)))
Rows = list[tuple[Any, ...]]


def over_time(level: float, random: np.random.Generator) -> tuple[Rows, dict[str, Any]]:
    """A matrix of accuracies that fall with distance, ratios, values per period and their means."""
    noise = random.normal(0, 0.01, (len(PERIODS), len(PERIODS)))
    rows: Rows = []
    for i, t in enumerate(PERIODS):
        for j, tau in enumerate(PERIODS[i:], i):
            rows.append(_row("accuracy", "each", t, tau, level - 0.01 * (j - i) + noise[i, j]))
            rows.append(_row("ttr", "each", t, tau, 1 - 0.015 * (j - i) + noise[i, j]))
        rows += [_row(metric, "each", t, None, level + noise[i, 0]) for metric in ("id", "ood", "tas")]
    rows += [_row(metric, "mean", None, None, level) for metric in ("id", "ood", "tas", "sh", "dh")]
    protocol = {"periods": PERIODS, "samples_per_period": [900] * 20, "held_out_per_period": [100] * 20}
    return rows, {"options": {"delta": 0.9, "horizon": None}, "protocol": protocol}


def on_a_stream(level: float, random: np.random.Generator) -> tuple[Rows, dict[str, Any]]:
    options = StreamOptions(images=100 * WINDOWS, batch=100).model_dump(mode="json")
    curve = level + random.normal(0, 0.02, WINDOWS)
    rows = [_row("stream-accuracy", "each", str(100 * k), None, value) for k, value in enumerate(curve, 1)]
    rows += [_row(metric, "mean", None, None, level) for metric in ("stream-accuracy", "batch-accuracy", "last-tenth")]
    return rows, {"options": options, "protocol": {"revealed": "inputs"}}


def at_the_end(level: float, random: np.random.Generator) -> tuple[Rows, dict[str, Any]]:
    protocol = {"steps": ["0 source", "1 rotation"], "samples_per_step": [6000, 4000], "test": 5000, "trials": 8}
    chosen = [{"train": "0", "objective": "erm", "layers": "all", "lr": 1e-3, "epoch": 3, "score": level}]
    rows = [_row("final-accuracy", "mean", None, None, level)]
    return rows, {"options": {"shifts": "R"}, "protocol": {**protocol, "chosen": chosen}}


def on_queries(level: float, random: np.random.Generator) -> tuple[Rows, dict[str, Any]]:
    rows = [
        _row(metric, "each", t, None, level + change)
        for metric in ("oec", "efr", "ukr", "okr", "csr", "kg")
        for t, change in zip(PERIODS, random.normal(0, 0.02, len(PERIODS)), strict=True)
    ]
    rows += [_row(metric, "final", None, None, level) for metric in ("oec", "ukr", "okr", "csr", "kg")]
    return [*rows, _row("efr", "mean", None, None, level)], {"options": {}, "protocol": {"periods": PERIODS}}


KINDS: dict[str, Callable[[float, np.random.Generator], tuple[Rows, dict[str, Any]]]] = {
    "timeline": over_time,
    "test-time": on_a_stream,
    "seq-to-final": at_the_end,
    "refinement": on_queries,
}


def _row(metric: str, stat: str, time: str | None, tau: str | None, value: float) -> tuple[Any, ...]:
    return (metric, stat, time, tau, value, value - 0.05, value + 0.05, 100, "examples")


def write(folder: Path, count: int) -> None:
    """Write a store with this many runs, without waiting for the disk."""
    store, random = Store.create(folder), np.random.default_rng(0)
    answers = pa.table({"correct": np.ones(100)})
    cards: dict[tuple[str, str, str], dict[str, Any]] = {}
    for place, (benchmark, data, method, seed) in zip(range(count), _jobs(), strict=False):
        level = 0.4 + 0.03 * METHODS.index(method) + random.normal(0, 0.01)
        rows, settings = KINDS[benchmark](level, random)
        run = store.run_folder(f"{place:08d}")
        run.mkdir(parents=True)
        columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
        tables = {"answers": answers, "scores": pa.table(columns, schema=SCORES)}
        files = {f"{name}.parquet": _write_table(run / f"{name}.parquet", table) for name, table in tables.items()}
        if (benchmark, data, method) not in cards:
            card = Card.model_validate(_card("", benchmark, data, method, 0, settings))
            cards[benchmark, data, method] = card.to_dict()
        card_of = cards[benchmark, data, method]
        own = {"key": run.name, "run": {**card_of["run"], "seed": seed}, "files": files}
        own["compute"] = {**card_of["compute"], "backward_macs": 10**8 + seed}
        _write_json(run / CARD, {**card_of, **own})
        _write_json(run / RUNTIME, {"seconds": 1.0, "finished": "2026-01-01T00:00:00+00:00"})


def _write_table(path: Path, table: pa.Table) -> dict[str, Any]:
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": len(table)}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    checksum = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**content, CHECKSUM_FIELD: checksum}), encoding="utf-8")


def _jobs() -> Iterator[tuple[str, str, str, int]]:
    seed = 0
    while True:
        yield from ((benchmark, data, method, seed) for benchmark in KINDS for data in DATASETS for method in METHODS)
        seed += 1


def _card(key: str, benchmark: str, data: str, method: str, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    registered = registry.get("benchmark", benchmark)
    usual = {"revealed": "labels", "label_delay_steps": 0, "labels_per_step": "all"}
    return {
        "key": key,
        "label": method,
        "run": {
            "benchmark": benchmark,
            "options": settings["options"],
            "data": {"name": data, "settings": {}},
            "model": {"name": "mlp", "settings": {"width": 64}},
            "method": {"name": method, "settings": {"lr": 0.001}},
            "reveal": {"delay": 0, "budget": None},
            "seed": seed,
        },
        "question": registered.question,
        "paper": registered.paper,
        "departures": list(registered.departures),
        "protocol": {**usual, **settings["protocol"]},
        "metrics": {},
        "data": {"name": data, "fingerprint": "f0", "samples": 20_000, "notes": []},
        "compute": {"forward_macs": 10**9 * (1 + METHODS.index(method)), "backward_macs": 10**8 + seed},
        "code": {"driftline": "0", "sources": "s0"},
    }
