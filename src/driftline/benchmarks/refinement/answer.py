"""The answer of refinement: whether errors are fixed, and whether that costs what the model knew."""

from __future__ import annotations

from driftline.benchmarks.answer import (
    Answer,
    BigNumber,
    Evidence,
    Plane,
    baseline,
    default_answer,
    first_known,
    interval,
    is_gain,
    is_loss,
    paired,
    source_line,
    value_text,
)

OVERALL, FIXED = ("oec", "final"), ("efr", "mean")
KEPT = (("ukr", "final"), ("ukr-before", "final"))


def answer(results: Evidence) -> Answer | None:
    """Return whether the best method beats the frozen model, and whether it forgets."""
    kept, fixed, frozen = first_known(results, KEPT), results.scores(*FIXED), baseline(results)
    gains = {name: gain for name, gain in results.gains(*OVERALL).items() if name in results.ranked and name in fixed}
    if not gains or kept is None or frozen is None:
        return default_answer(results, (OVERALL, FIXED))
    best = max(gains, key=lambda name: gains[name].value)
    known = results.by_seed(*kept)
    forgets = is_loss(paired(known[best], known[frozen]))
    gain = gains[best]
    if is_gain(gain) and not forgets:
        text = f"Yes: {best} fixes errors and beats the frozen model; forgetting is not certain."
    elif is_gain(gain):
        text = f"Partly: {best} fixes errors and beats the frozen model, but forgets upstream knowledge."
    elif gain.value > 0:
        text = f"Not certain yet: {best} fixes errors, but may not beat the frozen model."
    else:
        text = f"Nothing beats the frozen model {frozen} overall."
    share, left = fixed[best], results.scores(*kept)[best]
    number = BigNumber(value_text(share.value), "% fixed", f"{interval(share)}, with {value_text(left.value)}% kept")
    known_number = BigNumber(value_text(left.value), "% kept", f"{interval(left)} of upstream queries right")
    episodes, size = results.options.get("episodes"), results.options.get("queries_per_episode")
    what = f"{episodes} episodes of {size} queries" if episodes and size else ""
    chart = Plane(kept, FIXED, "upstream knowledge kept, %")
    source = source_line(share, what)
    certain = is_gain(gain) or gain.value <= 0
    return Answer(text, (number, known_number), chart, "Errors fixed at once, %", source, best, certain)
