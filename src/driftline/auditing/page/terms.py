"""What the numbers of an audit's page mean, in a sentence each."""

from __future__ import annotations

from driftline.auditing.page.view import View

Term = tuple[str, str, str]
"""Anchor, term and meaning."""


GENERAL: tuple[Term, ...] = (
    (
        "distance",
        "Distance of an input",
        "Between 0 and 1, from the first period: Kolmogorov-Smirnov for numbers, total variation for categories. "
        "Moved: 0.1 or more in some period, with p < 0.05 after Benjamini-Hochberg.",
    ),
    ("baseline", "Constant answer", "The trivial baseline: the most frequent class, or the mean, of known labels."),
    ("interval", "Interval", "95%: from test rows and the choice of training rows, given the course of the world."),
)
OF_LOG: Term = (
    "log",
    "Logged predictions",
    "Scored as they were logged. Change: the best trend or step, by permutation.",
)
OF_MODELS: tuple[Term, ...] = (
    ("gain", "Gain", "Difference between a policy and never retraining, paired row by row."),
    (
        "tas",
        "TAS",
        "Temporal accuracy stability: the {score} of models in later periods, as a share of that of a model of the "
        "same period and as many rows. 1: no loss by age. Not clipped.",
    ),
    ("staleness", "Behind a new model", "Mean loss of older models against the model of the same period."),
    (
        "sh",
        "Horizon (SH)",
        "Mean age at which a model first falls below {percent:g}% of a new one (Kaplan-Meier). It is called seen only "
        "if models last longer than in permuted periods; else it is noise.",
    ),
    (
        "replay",
        "Replay",
        "Policies start from one model of the first periods, and predict each period before its labels are known.",
    ),
    (
        "knee",
        "Recommended, knee",
        "The knee has the fewest retrainings among policies behind the best by at most half a point or a tenth of its "
        "gain, and not surely by more than half a point. It is recommended unless costs are given or no gain is "
        "certain.",
    ),
    (
        "circles",
        "New model of a period",
        "One model per half of each period, tested on the other half: the best that rows of this time allow at equal "
        "numbers of rows.",
    ),
)


def terms(view: View) -> list[Term]:
    """Return the definitions that this page needs."""
    if view.result.log is not None:
        return [OF_LOG, *GENERAL]
    delta = view.result.horizons.delta if view.result.horizons else 0.9
    score = "score" if view.metric.higher_is_better else "skill, 1 - loss / loss of the constant answer,"
    own = [(anchor, term, text.format(score=score, percent=100 * delta)) for anchor, term, text in OF_MODELS]
    return [*own, *GENERAL]


def protocol(view: View) -> str:
    """Return how labels become known and models are tested."""
    data = view.result.data
    late = ""
    if data.label_time:
        late = f", and a label is revealed when it became known (column {data.label_time})"
    elif isinstance(data.label_delay, str):
        late = f", and a label is revealed {data.label_delay} after its row"
    elif data.label_delay:
        late = f", which happens {data.label_delay} periods late"
    text = f"Each period is predicted before its labels are revealed{late}."
    if view.result.log is None:
        text += (
            " Encodings are fitted on a model's own training rows. For the matrix one model per half of each period is "
            "trained, and tested on the other half of every period, earlier and later."
        )
    return f"{text} The deciding metric is {view.metric.title} ({data.metric_reason})."
