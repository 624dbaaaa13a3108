"""The command that measures how far steps are from the final one, as a user types it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from typer.testing import CliRunner

from driftline import data
from driftline.cli.commands.shift import shift
from driftline.errors import UserError
from driftline.metrics.wasserstein import principal_components, wasserstein2
from driftline.seeds import Seed
from driftline.streams import sequence

SMALL = ["--set", "seq-to-final.sizes=60,40,50", "--set", "seq-to-final.test=60"]


def run(*arguments: str) -> Any:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(shift)
    return CliRunner().invoke(app, list(arguments))


def test_ratios_are_printed_and_written_by_step_and_seed(tmp_path: Path) -> None:
    output = tmp_path / "w2.csv"
    ran = run("--data", "color-digits", "--shifts", "TT;RR", "--seeds", "2", *SMALL, "-o", str(output))
    assert ran.exit_code == 0, ran.output
    assert "color-digits, TT, seed 1" in ran.output
    rows = pd.read_csv(output)
    assert rows.loc[rows["setting"] == "TT", "n"].tolist() == [40, 40, 30, 30, 40, 40] * 2, "four fifths of each class"
    rows = rows.set_index(["setting", "seed", "method", "metric"]).sort_index()
    assert len(rows) == 2 * 2 * 3 * 2
    for setting, seed in (("TT", 0), ("RR", 1)):
        made = sequence(data.load("color-digits", {}, []), setting, (60, 40, 50), 60, seed=Seed(seed).child("sequence"))
        train = [made[t].samples[: len(made.rows[t].train)].x for t in range(3)]
        small = principal_components(train, made.test.x)
        distances = np.array([wasserstein2(x, small.final) for x in small.steps])
        found = [rows.loc[(setting, seed, f"step {t}", "covariate W2 ratio"), "value"] for t in range(3)]
        np.testing.assert_allclose(found, distances / distances[-1])
        assert f"{found[0]:.3f}" in ran.output


def test_what_is_not_a_sequence_is_refused_in_words() -> None:
    ran = run("--data", "color-digits", "--shifts", "XX", *SMALL)
    assert isinstance(ran.exception, UserError)
    assert "no shift 'X'" in str(ran.exception)
