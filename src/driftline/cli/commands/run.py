"""`driftline run`: run a benchmark, a matrix or a recipe."""

from __future__ import annotations

import difflib
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from driftline import registry
from driftline.cli import options
from driftline.cli.completion import complete_names
from driftline.cli.printing.progress_message import progress_message
from driftline.cli.printing.settings import write_settings
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError, unknown_name
from driftline.io import user_code

if TYPE_CHECKING:
    from driftline.engine.executors.config import ExecutorConfig
    from driftline.engine.planning.plan import Plan
    from driftline.spec import Spec
    from driftline.store.store import Store
    from driftline.types import JsonObject

What = Annotated[
    str,
    typer.Argument(
        help="Name of a benchmark, matrix, or a recipe: a YAML file, or recipe:NAME.",
        metavar="BENCHMARK|matrix|RECIPE",
        autocompletion=complete_names("benchmark", "matrix"),
    ),
]
PrintSpec = Annotated[
    bool, typer.Option("--print-spec", help="Print the spec as YAML and exit. Runs none of your code.")
]
Full = Annotated[
    bool, typer.Option("--full", help="With --print-spec: fill in every default. Loads your data and code.")
]
Upgrade = Annotated[
    bool,
    typer.Option("--upgrade", help="List the runs that would be computed or scored again, with the reason, and exit."),
]


class RunCommand(TyperCommand):
    """A command whose help lists the options of the benchmark that is named with it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["words"] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        names = registry.names("benchmark")
        named = [word for word in ctx.meta.get("words", ()) if word in names]
        for name in named:
            with formatter.section(f"Options of {name}"):
                write_settings(formatter, "benchmark", name)
        if not named:
            formatter.write_paragraph()
            formatter.write_text(f"For the options of a benchmark, name it: {', '.join(names)}.")


def run(
    context: typer.Context,
    what: What,
    data: options.Data = None,
    model: options.Model = None,
    methods: options.Methods = None,
    seeds: options.Seeds = None,
    budget_macs: options.BudgetMacs = None,
    labels: options.Labels = None,
    set_: options.Set = None,
    device: options.Device = None,
    precision: options.PrecisionName = None,
    engine: options.EngineName = None,
    jobs: options.Jobs = None,
    address: options.Address = None,
    timeout: options.Timeout = None,
    retries: options.Retries = 2,
    cpus: options.Cpus = 1.0,
    gpus: options.Gpus = 0.0,
    memory: options.Memory = None,
    runs: options.RunsFolder = None,
    data_dir: options.DataFolder = None,
    print_spec: PrintSpec = False,
    full: Full = False,
    upgrade: Upgrade = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a benchmark or a recipe and record the results.

    Every option of the benchmark is a flag as well: `--shifts CLR` is `--set seq-to-final.shifts=CLR`. `matrix` runs
    `--methods` in all `--benchmarks` that reveal enough labels.
    """
    _check_flags(print_spec, full, upgrade)
    with progress_message(f"preparing {what}", quiet):  # the imports may take longest
        config = _executor(engine, jobs, address, timeout, retries, cpus, gpus, memory)
        with user_code.forbid_code() if print_spec and not full else nullcontext():
            settings = options.assignments(set_, device, precision)
            content = spec_content(what, context.args, data, model, methods, seeds, settings, budget_macs, labels)
            text = _to_yaml(content, full, data_dir) if print_spec else ""
    if text:
        echo(text, nl=False)
    elif upgrade:
        _print_upgrade(content, runs, data_dir)
    else:
        raise typer.Exit(_run(content, runs, data_dir, config, quiet))


def _executor(
    engine: str | None,
    jobs: int | None,
    address: str | None,
    timeout: float | None,
    retries: int,
    cpus: float,
    gpus: float,
    memory: str | None,
) -> ExecutorConfig:
    from driftline.engine.executors.config import ExecutorConfig, parse_bytes

    size = None if memory is None else parse_bytes(memory)
    return ExecutorConfig(engine, jobs, address, timeout, retries, cpus, gpus, size)  # type: ignore[arg-type]


def _check_flags(print_spec: bool, full: bool, upgrade: bool) -> None:
    if full and not print_spec:
        raise UserError("--full needs --print-spec")
    if upgrade and print_spec:
        raise UserError("--upgrade and --print-spec each print something else: give one of them")


def _print_upgrade(content: JsonObject, runs: str | None, data_dir: Path | None) -> None:
    """Print which runs an upgrade would compute or score again, and why."""
    from driftline.cli.printing.upgrade import upgrade_text
    from driftline.engine.upgrade import upgrade

    echo(upgrade_text(upgrade(content, runs=runs, data_dir=data_dir)))


def _to_yaml(content: JsonObject, full: bool, data_dir: Path | None) -> str:
    """Return a spec or a matrix as YAML, checked as far as possible without running a user's code."""
    from driftline import data as data_
    from driftline import spec as spec_
    from driftline.cli.commands import run_matrix

    if run_matrix.NAME in content:
        if full:
            raise UserError("--full is for the spec of one benchmark, and a matrix has several")
        return run_matrix.to_yaml(content)
    spec = spec_.parse(content)
    if full:
        folders = data_.data_folders(data_dir)
        suits = "" if spec.model else data_.load(spec.data.name, spec.data.settings, folders).model
        return spec.to_full_yaml(suits)
    with suppress(user_code.CodeNotAllowed):  # names and settings are checked, except what only a user's code knows
        spec.jobs(default_model="logistic-regression")
    return spec.to_yaml()


def _run(content: JsonObject, runs: str | None, data_dir: Path | None, config: ExecutorConfig, quiet: bool) -> int:
    """Run a spec or a matrix; return the exit code."""
    from driftline import spec as spec_
    from driftline.cli.commands import run_matrix
    from driftline.store.store import Store

    if run_matrix.NAME in content:
        return run_matrix.run(content, Store.create(runs), data_dir, config, quiet)
    spec = spec_.parse(content)
    return run_and_print(spec, Store.create(runs), data_dir, config, quiet)


def run_and_print(spec: Spec, store: Store, data_dir: Path | None, config: ExecutorConfig, quiet: bool) -> int:
    """Run a spec, and print progress, results and failures; return the exit code."""
    from driftline.cli.printing import runs as show
    from driftline.cli.progress import Progress
    from driftline.engine.costs.sharing import sharing_savings
    from driftline.engine.run import run_spec

    planning = ExitStack()
    with planning, Progress(quiet) as progress:
        planning.enter_context(
            progress_message(f"planning {len(spec.methods):,} method(s), {len(spec.seeds):,} seed(s)", quiet)
        )

        def begin(plan: Plan) -> None:
            planning.close()
            progress.begin(plan)

        finished = run_spec(spec, store, config, data_dir, on_plan=begin, on_event=progress.show)
    if not quiet:
        show.print_summary(finished.record, store, finished.summary)
        show.print_logs(store, finished.summary)
        show.print_sharing(sharing_savings(finished.plan, store))
    show.print_failures(finished.summary, finished.plan.stages, store)
    return 1 if finished.summary.failed else 0


def spec_content(
    what: str,
    flags: list[str],
    data: str | None,
    model: str | None,
    methods: str | None,
    seeds: int | None,
    assignments: list[str],
    budget_macs: str | None = None,
    labels: str | None = None,
) -> JsonObject:
    """Return the content of a spec or a matrix from the recipe, if there is one, and the flags; flags win."""
    from driftline import spec as spec_
    from driftline.cli.commands import run_matrix
    from driftline.spec.settings import listed

    options.check_names(data, methods)
    budget = options.parse_macs(budget_macs)
    if run_matrix.is_matrix(what):
        if data or model:
            raise UserError("a matrix has data and a model in each of its columns: set them in a recipe")
        return run_matrix.content(what, flags, methods, seeds, assignments, budget, labels)
    choices = {"data": data, "model": model, "methods": methods, "seeds": seeds, "budget_macs": budget}
    content = _with_recipe(what, {key: value for key, value in choices.items() if value is not None})
    if labels is not None:
        content["reveal"] = {**(content.get("reveal") or {}), "rules": listed(labels)}
    own = benchmark_options(flags, content)
    return spec_.apply_overrides(content, [*own, *assignments])


def _with_recipe(what: str, choices: JsonObject) -> JsonObject:
    """Return the content of a recipe with these choices replaced, or of a spec for this benchmark."""
    from driftline import recipes
    from driftline import spec as spec_

    if recipes.is_recipe(what):
        return {**spec_.read_yaml(what), **choices}
    if ":" not in what:
        registry.get("benchmark", what)
    missing = [f"--{key}" for key in ("data", "methods") if key not in choices]
    if missing:
        raise UserError(f"driftline run {what} needs {' and '.join(missing)}; see `driftline list datasets|methods`")
    return {"benchmark": what, **choices}


def benchmark_options(flags: list[str], content: JsonObject) -> list[str]:
    """Return flags such as `--shifts CLR` or `--shifts=CLR` as assignments to options of the spec's benchmark."""
    if not flags:
        return []
    benchmark = str(content.get("benchmark"))
    schema = registry.get("benchmark", benchmark).options
    known = schema.model_fields
    words, assignments = options.split_flags(flags), []
    for flag, value in zip(words[::2], [*words[1::2], None], strict=False):
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in (*known, *schema.refused):
            raise _unknown_flag(flag, list(known), content)
        if value is None:
            raise UserError(f"{flag} needs a value")
        assignments.append(f"{benchmark}.{name}={value}")
    return assignments


def _unknown_flag(flag: str, known: list[str], content: JsonObject) -> UserError:
    """Return the error for an unknown flag, with the nearest one or with the setting of another part."""
    from driftline import spec as spec_

    benchmark = content["benchmark"]
    flags = ["--data", "--model", *options.RUN_FLAGS, *(f"--{option.replace('_', '-')}" for option in known)]
    name = flag.removeprefix("--").replace("-", "_")
    places = spec_.similar_settings(name, content)
    same = [place for place in places if place.endswith(f".{name}")]
    near = difflib.get_close_matches(flag, flags, n=1, cutoff=0.9 if same else 0.8)
    if same or (places and not near):
        ways = " or ".join([*near, *(f"--set {place}=..." for place in same or places)])
        return UserError(f"{benchmark} has no flag '{flag}'. Did you mean {ways}?")
    return unknown_name("flag", flag, flags, f" (for {benchmark})")
