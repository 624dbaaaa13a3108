"""The command that calibrates, as a user types it."""

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from driftline import registry
from driftline.benchmarks.test_time import accuracy_grid
from driftline.cli.commands.calibrate import calibrate
from driftline.data import Dataset
from driftline.engine.planning.plan import plan
from driftline.errors import UserError
from driftline.spec import parse
from driftline.store.store import Store
from driftline.streams import read_matrices
from driftline.tasks import Classification
from driftline.types import Samples


def darker(x, name, severity, keys):
    return (x * (1 - severity / 5)).astype(np.uint8)


@pytest.fixture
def command(monkeypatch, tmp_path):
    """The command on grey squares, of which half are darker."""
    y = np.arange(80) % 2
    x = np.where(y[:, None, None, None] == 1, 200, 40).astype(np.uint8) * np.ones((1, 32, 32, 3), np.uint8)
    samples = Samples(x, y, time=np.zeros(80, int))
    dataset = Dataset("greys", samples, Classification(("dark", "light")), test=np.arange(80) >= 40, model="linear")

    registry.names("dataset")
    monkeypatch.setitem(registry._things["dataset"], "greys", lambda where: dataset)
    monkeypatch.setattr(accuracy_grid, "builtin_corruptions", lambda frost=None: darker)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(calibrate)
    fixed = ["--data", "greys", "--images", "5000", "--levels", "2", "--upstream-updates", "40"]
    fixed += ["--runs", str(tmp_path / "runs")]

    def run(*arguments):
        return CliRunner().invoke(app, [*fixed, *arguments])

    return run


def test_a_file_with_all_matrices(command, tmp_path):
    output = tmp_path / "out.safetensors"
    ran = command("-o", str(output), "--corruptions", "fog,snow,jpeg")
    assert ran.exit_code == 0, ran.output
    assert "6 matrices of 2 x 2 accuracies" in ran.output
    assert "calibration: jpeg: finished" in ran.output
    matrices = read_matrices(output)
    np.testing.assert_array_equal(matrices["fog", "snow"], [[100, 50], [50, 50]])
    assert matrices.metadata["model"] == "linear"
    assert matrices.metadata["corruptions"] == ["fog", "snow", "jpeg"]


def test_settings_reach_the_model_and_quiet_is_quiet(command, tmp_path):
    output = tmp_path / "out.safetensors"
    settings = ["--model", "mlp", "--set", "model.width=8", "--corruptions", "hard", "-q"]
    ran = command("-o", str(output), *settings)
    assert ran.exit_code == 0, ran.output
    assert ran.output == ""
    assert read_matrices(output).metadata["model"] == {"name": "mlp", "width": 8, "depth": 2}
    assert len(read_matrices(output).by_pair) == 12


def test_a_wrong_name_is_a_sentence(command, tmp_path):
    ran = command("-o", str(tmp_path / "x"), "--corruptions", "fgo,snow")
    assert isinstance(ran.exception, UserError)
    assert "Did you mean 'fog'" in str(ran.exception)


def test_the_model_is_the_one_that_runs_start_from(command, tmp_path):
    """The stages of a calibration are those of a run that makes its own."""
    output = tmp_path / "out.safetensors"
    assert command("-o", str(output), "--corruptions", "hard").exit_code == 0
    spec = {"benchmark": "test-time", "data": "greys", "methods": "frozen"}
    options = {"difficulty": "hard", "upstream_updates": 40, "images": 64, "calibration_levels": 2}
    stages = plan(parse({**spec, "model": "linear", "test-time": options})).stages
    kept = {path.stem for path in (tmp_path / "runs" / "stages").iterdir()}
    assert kept == {stage.key for stage in stages if not stage.is_result}
    assert output.read_bytes() == Store(tmp_path / "runs").stage_path(stages[-2].key).read_bytes()
