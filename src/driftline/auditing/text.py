"""A result as text for the terminal: the verdict, then the numbers, in the order of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.auditing.findings import interval
from driftline.auditing.wording import plain_number, policy_name
from driftline.report.format import count_of

if TYPE_CHECKING:
    from driftline.auditing.result import AuditResult

MAX_POLICIES = 5
MAX_INPUTS = 4


def result_text(result: AuditResult) -> str:
    """Return the verdict and the most important numbers."""
    lines = [*_kept(result), *_horizon(result), _inputs(result), _labels(result), *_policies(result)]
    width = max(len(label) for label, _ in lines)
    numbers = "\n".join(f"{label:<{width}}  {text}" for label, text in lines)
    warnings = "".join(f"\nWarning: {warning}." for warning in result.data.warnings)
    return f"{result.summary}\n\n{numbers}{warnings}"


def _kept(result: AuditResult) -> list[tuple[str, str]]:
    if not result.sizes:
        return []
    metric, sizes = result.metric, result.sizes[0]
    new, old = (f"{metric.text(e.value)} {interval(metric, e)}" for e in (sizes.fresh, sizes.old))
    models = ("New against old", f"{metric.title} {new} of a new model, {old} of an older one in the same period")
    if not sizes.tas.is_known or (result.verdict is not None and not result.verdict.has_skill):
        return [models]
    tas = sizes.tas
    return [("TAS", f"{tas.value:.3f} [{tas.low:.3f}, {tas.high:.3f}] of a new model is kept ({tas.n} models)"), models]


def _horizon(result: AuditResult) -> list[tuple[str, str]]:
    if result.horizons is None or result.aging is None or not result.aging.verdict.has_skill:
        return []
    horizons, aging = result.horizons, result.aging
    sh, k, limit = horizons.sh, aging.pieces, aging.age(horizons.sh.limit)
    if aging.verdict.aged and sh.events and sh.depends_on_order:
        text = f"{aging.age(sh.value)} [{sh.low / k:.3g}, {sh.high / k:.3g}] within {limit}"
    elif (aging.verdict.aged or aging.verdict.miscalibrated) and horizons.curve.horizon is not None:
        text = f"after {aging.age(horizons.curve.horizon)} surely below {100 * horizons.delta:g}% of a new model"
    else:
        text = f"{'none beyond noise' if sh.events else 'not seen'} within {limit}"
    return [("Horizon", text)]


def _inputs(result: AuditResult) -> tuple[str, str]:
    if result.shift is None:
        return "Inputs", "not known: there are no feature columns"
    moved = result.shift.changed_features
    named = ", ".join(f"{feature.feature} {feature.largest:.2f}" for feature in moved[:MAX_INPUTS])
    more = ", ..." if len(moved) > MAX_INPUTS else ""
    return "Inputs", f"{len(moved)} of {len(result.shift.features)} moved{': ' if named else ''}{named}{more}"


def _labels(result: AuditResult) -> tuple[str, str]:
    labels = result.label_shift.labels
    if not labels.significant:
        return "Labels", "no significant shift"
    if labels.moved is None:
        return (
            "Labels",
            f"mean moved from {plain_number(labels.first, digits=4)} to {plain_number(labels.last, digits=4)}",
        )
    return "Labels", f"share of '{labels.moved}' moved from {100 * labels.first:.0f}% to {100 * labels.last:.0f}%"


def _policies(result: AuditResult) -> list[tuple[str, str]]:
    if result.policies is None:
        return []
    metric, chosen = result.metric, result.policies.recommended
    front = [r for r in result.policies.results if r.on_frontier]
    alike = {(r.retrainings, r.quality.value): r for r in reversed([chosen, *front])}  # of those that did the same, one
    others = [r for r in alike.values() if r is not chosen]
    others.sort(key=result.policies.results.index)
    shown = sorted([chosen, *others[: MAX_POLICIES - 1]], key=result.policies.results.index)
    rows = []
    for k, r in enumerate(shown):
        name, mark = policy_name(r.policy, result.data.unit), " (recommended)" if r is chosen else ""
        score = f"{metric.text(r.quality.value)} {interval(metric, r.quality)}"
        rows.append(("" if k else "Policies", f"{score} with {count_of(r.retrainings, 'retraining')}: {name}{mark}"))
    return rows
