"""The device of a run, from the command line."""

from __future__ import annotations

from .conftest import Command


def test_settings_of_a_device_from_the_command_line(driftline: Command) -> None:
    flags = ("run", "timeline", "--data", "digits", "--model", "mlp", "--methods", "ft", "--print-spec")
    _, out, _ = driftline(*flags, "--device", "cuda:1", "--precision", "bfloat16", "--set", "device.tf32=true")
    assert "device:\n  name: cuda:1\n  precision: bfloat16\n  tf32: true\n" in out
    code, _, err = driftline(*flags[:-1], "--device", "tpu")
    assert (code, "unknown device 'tpu'" in err or "not available" in err) == (2, True)
    code, _, err = driftline(*flags, "--precision", "float8")
    assert (code, "precision" in err) == (2, True)
