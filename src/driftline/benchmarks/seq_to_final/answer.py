"""The answer of seq-to-final: which use of the past beats training on the final step alone."""

from __future__ import annotations

from driftline.benchmarks.answer import (
    Answer,
    BigNumber,
    Dots,
    Evidence,
    default_answer,
    gain_number,
    interval,
    is_gain,
    source_line,
    value_text,
)

FINAL = ("final-accuracy", "mean")
NAMES = {
    "baseline": "final step alone (baseline)",
    "oracle": "more final data (oracle)",
    "seq-erm": "all steps pooled (seq-erm)",
    "seq-irm": "invariant to steps (seq-irm)",
    "seq-dro": "worst step first (seq-dro)",
    "seq-ft": "all layers, step by step (seq-ft)",
    "lp-ft": "head, then all layers (lp-ft)",
    "i-ft": "last layers in turn (i-ft)",
    "d-ft": "some layers each step (d-ft)",
    "sft": "slower each step (sft)",
    "seq-ewc": "weights held back (seq-ewc)",
    "jm": "one joint model (jm)",
}


def answer(results: Evidence) -> Answer | None:
    """Return whether the best method beats the baseline."""
    gains = {name: gain for name, gain in results.gains(*FINAL).items() if name in results.ranked}
    if not gains:
        return default_answer(results, (FINAL,))
    best = max(gains, key=lambda name: gains[name].value)
    helping = sum(is_gain(gain) for gain in gains.values())
    name = NAMES.get(best, best)
    if is_gain(gains[best]) and helping == len(gains):
        text = f"Every use of the past beats the final step alone; best is {name}."
    elif is_gain(gains[best]):
        text = f"The past helps: {name} beats the final step alone."
    elif gains[best].value > 0:
        text = "Not certain yet that the past helps at the final step."
    else:
        text = "Nothing beats the final step alone."
    cell = results.scores(*FINAL)[best]
    accuracy = BigNumber(value_text(cell.value), "%", f"{interval(cell)} accuracy of {best}")
    number = gain_number(gains[best], "over the final step alone")
    chart = Dots(FINAL, NAMES)
    certain = is_gain(gains[best]) or gains[best].value <= 0
    return Answer(
        text, (number, accuracy), chart, "Accuracy at the final step, %", _source(results, best), best, certain
    )


def _source(results: Evidence, method: str) -> str:
    sizes, cell = results.protocol.get("samples_per_step") or [], results.scores(*FINAL)[method]
    what = f"{sizes[-1]:,} final samples, {cell.n:,} test answers" if sizes else ""
    return source_line(cell, what)
