"""The answer of test-time: whether adaptation without labels collapses, and whether it beats the frozen model."""

from __future__ import annotations

from driftline.benchmarks.answer import (
    AlongStream,
    Answer,
    BigNumber,
    Evidence,
    default_answer,
    gain_number,
    interval,
    is_gain,
    is_loss,
    source_line,
    value_text,
)

ACCURACY = ("stream-accuracy", "mean")


def answer(results: Evidence) -> Answer | None:
    """Return which methods are worse than the frozen model, and whether the best one beats it."""
    gains = {name: gain for name, gain in results.gains(*ACCURACY).items() if name in results.ranked}
    if not gains:
        return default_answer(results, (ACCURACY,))
    best = max(gains, key=lambda name: gains[name].value)
    worse = [name for name, gain in gains.items() if is_loss(gain)]
    beats = is_gain(gains[best])
    if len(worse) == len(gains):
        text = "Every method collapses: all are worse than the frozen model."
    elif worse:
        which = worse[0] if len(worse) == 1 else f"{len(worse)} of {len(gains)} methods"
        ending = f"{best} beats it." if beats else "a gain of others is not certain yet."
        text = f"{which} collapse{'s' if len(worse) == 1 else ''} below the frozen model; {ending}"
    elif beats:
        text = f"No method collapses, and {best} beats the frozen model."
    else:
        text = "No method collapses. The gain over the frozen model is not certain yet."
    cell = results.scores(*ACCURACY)[best]
    numbers = (
        gain_number(gains[best], f"for {best} over the frozen model"),
        BigNumber(value_text(cell.value), "%", f"{interval(cell)} accuracy of {best}"),
    )
    source = source_line(cell, f"{cell.n:,} images per run")
    chart = AlongStream(ACCURACY[0])
    certain = beats or bool(worse)
    return Answer(text, numbers, chart, "Accuracy along the stream, %", source, best, certain)
