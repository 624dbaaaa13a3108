"""`driftline audit`: print the answers about a user's table and model, and write the page and the numbers."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from importlib import import_module
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.audit_flags import File, with_audit_flags
from driftline.cli.options import check_output
from driftline.cli.printing.terminal import echo
from driftline.errors import MissingExtra

if TYPE_CHECKING:
    from driftline.auditing import AuditResult

Conditions = Annotated[list[str] | None, typer.Option(help='Exit with 1 if this holds, e.g. "tas<0.9".')]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", callback=check_output, help="The HTML file to write. [default: audit.html; none with --quick]"
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option(callback=check_output, help="The JSON file for all numbers. [default: beside the HTML file]"),
]


def _print_schema(wanted: bool) -> None:
    if wanted:
        from driftline.auditing.schema import audit_schema

        echo(dumps(audit_schema(), indent=2))
        raise typer.Exit


Schema = Annotated[
    bool, typer.Option("--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of audit.json.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers only.")]


@with_audit_flags()
def audit(
    file: File = None,
    *,
    fail_if: Conditions = None,
    output: Output = None,
    json: JsonFile = None,
    quiet: Quiet = False,
    schema: Schema = False,
    **given: object,
) -> None:
    """Measure whether a model of your table ages.

    The audit also finds since when, at what cost, and when to retrain the model.
    """
    from driftline.auditing import gate
    from driftline.auditing.run import audit as run_audit
    from driftline.cli.progress import TaskProgress

    for condition in fail_if or []:
        gate.check(condition)  # before any work is done
    if output:
        import_module("driftline.report.figures")  # fails now, not after the audit, if figures cannot be drawn
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value not in (None, [])}
    if "engine" not in chosen and "address" not in chosen:
        chosen.setdefault("jobs", 2)
    with TaskProgress(quiet) as progress:
        result = run_audit(file, **chosen, on_progress=progress.show)
    if not given.get("quick"):
        output = output or Path("audit.html")
        json = json or output.with_suffix(".json")
    _report(result, output, json, fail_if or [], quiet)


def _report(result: AuditResult, output: Path | None, json: Path | None, conditions: list[str], quiet: bool) -> None:
    """Print the answers, write the page and the numbers, and exit with 1 if a condition holds."""
    command = shlex.join(["driftline", *sys.argv[1:]])
    echo(f"{result}")  # first, so that it is shown even if the page cannot be written
    result = replace(result, provenance=replace(result.provenance, command=command))
    result.write(json=json)
    lines = [] if json is None else [f"all numbers: {json}"]
    try:
        result.write(output)
        lines = [*([] if output is None else [f"page with charts: {output}"]), *lines]
    except MissingExtra as error:
        lines = [f"no page with charts: {error}", *lines]
    if lines and not quiet:
        echo("\n" + "\n".join(lines))
    failed = [condition for condition in conditions if result.fails(condition)]
    for condition in conditions:
        if condition in failed:
            echo(f"gate failed: {condition} ({result.describe(condition)})", err=True)
        elif not quiet:
            echo(f"gate passed: not {condition} ({result.describe(condition)})")
    if failed:
        raise typer.Exit(1)
