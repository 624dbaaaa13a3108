"""The answer of open-world: which method is most accurate, and whether a cheaper one learns as well."""

from __future__ import annotations

from driftline.benchmarks.answer import (
    Answer,
    BigNumber,
    Cost,
    Evidence,
    best_method,
    default_answer,
    interval,
    is_gain,
    paired,
    source_line,
    value_text,
)

OVERALL, RARE = ("overall", "mean"), ("novel-tail", "mean")


def answer(results: Evidence) -> Answer | None:
    """Return the most accurate method, and its compute against the cheapest method that learns."""
    cells = results.scores(*OVERALL)
    able = results.uses_labels & cells.keys()
    learning = [name for name in results.ranked if name in able and results.roles[name] != "baseline"]
    if len(learning) < 2:
        return default_answer(results, (OVERALL,))
    best, values = best_method(results, OVERALL), results.by_seed(*OVERALL)
    others = [name for name in learning if name != best]
    certain = all(is_gain(paired(values[best], values[name])) for name in others)
    first = f"{best} beats every other method" if certain else f"Nothing beats {best}"
    text = f"{first}{_price(results, best, learning)}."
    cell, gmac = cells[best], results.gmac.get(best)
    cost = f" at {_rounded(gmac)} GMAC" if gmac is not None else ""
    numbers = [BigNumber(value_text(cell.value), "% right", f"{interval(cell)}{cost}")]
    if rare := results.scores(*RARE).get(best):
        numbers.append(BigNumber(value_text(rare.value), "%", f"{interval(rare)} on new classes with few samples"))
    source = source_line(cell, f"{cell.n:,} samples one by one")
    return Answer(text, tuple(numbers), Cost(OVERALL), "Accuracy over all samples, %", source, best, True)


def _price(results: Evidence, best: str, learning: list[str]) -> str:
    """Return how the compute of the best method compares."""
    costs = {name: results.gmac[name] for name in learning if results.gmac.get(name)}
    if best not in costs or len(costs) < 2:
        return ""
    cheapest = min(costs, key=lambda name: costs[name])
    if cheapest == best:
        return ", and nothing that learns is cheaper"
    return f", at {_rounded(costs[best] / costs[cheapest])} times the compute of {cheapest}"


def _rounded(amount: float) -> str:
    """Return an amount with two digits that count.

    >>> _rounded(12345), _rounded(0.0123), _rounded(99.6)
    ('12,000', '0.012', '100')
    """
    return f"{float(f'{amount:.2g}'):,.10g}"
