"""The numbers of an audit in plain words, in the order in which an owner asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MARGIN = 0.02  # a loss below two points is called none, however certain


@dataclass(frozen=True)
class Answer:
    """A question and what the numbers say to it."""

    question: str
    text: str


def answers(numbers: Mapping[str, Any]) -> tuple[Answer, ...]:
    """All answers; those that could not be had say why."""
    made = [
        Answer("How fast does quality decay, and is it the model or the data?", _decay(numbers)),
        Answer("How long is a model valid, and when is its decay evident?", _horizons(numbers)),
        Answer("What changed?", _shift(numbers)),
        Answer("When should it have been retrained?", _policy(numbers)),
    ]
    return tuple(made)


def headline(numbers: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers that a gate may name, flat; `_low` and `_high` are the ends of a 95 % interval."""
    flat: dict[str, float | None] = {"rows": numbers["data"]["rows"], "periods": len(numbers["data"]["periods"])}
    shift = numbers.get("shift", {}).get("overall", {})
    measured = {
        **{name: value for name, value in numbers["decay"].items() if isinstance(value, dict) and "value" in value},
        **{f"{name}_gap": shift[name] for name in ("covariate", "conditional") if name in shift},
    }
    for name, found in measured.items():
        flat |= {name: found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
    if "shift" in numbers:
        aucs = [part["auc"]["value"] for part in numbers["shift"]["periods"].values()]
        flat["domain_auc"] = max(aucs)
        flat["changed_features"] = sum(row["changed"] for row in numbers["shift"]["features"])
    if "policies" in numbers:
        rows = {row["policy"]: row for row in numbers["policies"]}
        chosen, best = (rows[numbers["recommendation"][key]] for key in ("policy", "best"))
        flat |= {"never": rows["never"]["quality"]["value"], "best": best["quality"]["value"]}
        flat |= {"recommended": chosen["quality"]["value"], "retrainings": chosen["retrainings"]}
        flat["gain"] = chosen["quality"]["value"] - rows["never"]["quality"]["value"]
    return flat


def verdict(decay: Mapping[str, Any]) -> str:
    """model, data, both or neither: what lost quality, if at least two points and surely more than none.

    Unknown where not even new models surely have any quality to lose.
    """
    if decay["fresh"]["low"] is None or decay["fresh"]["low"] <= 0:
        return "unknown"
    blamed = [name for key, name in (("ageing", "model"), ("harder", "data")) if _sure(decay[key])]
    return "both" if len(blamed) == 2 else blamed[0] if blamed else "neither"


def kind(numbers: Mapping[str, Any]) -> str:
    """concept, noise, covariate, none or unknown: what sort of change the numbers point to."""
    overall = numbers["shift"]["overall"]
    if overall["periods"] == 0:
        return "unknown"
    if _sure(overall["conditional"]):
        ageing = "ageing" not in numbers["decay"] or _sure(numbers["decay"]["ageing"])
        return "concept" if ageing else "noise"
    return "covariate" if any(row["changed"] for row in numbers["shift"]["features"]) else "none"


def points(value: float | None, sign: bool = False) -> str:
    """A share as points of a hundred."""
    return "–" if value is None else f"{100 * value:{'+' if sign else ''}.1f}"


def interval(found: Mapping[str, Any], scale: float = 100) -> str:
    """Its 95 % interval in brackets."""
    if found["low"] is None:
        return "[–]"
    return f"[{scale * found['low']:.1f}, {scale * found['high']:.1f}]"


def _plain(found: Mapping[str, Any]) -> str:
    """A number with three digits and its interval, or a dash."""
    if found["value"] is None or found["low"] is None:
        return "–"
    return f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def _times(retrainings: int) -> str:
    return "1 retraining" if retrainings == 1 else f"{retrainings} retrainings"


def _sure(found: Mapping[str, Any]) -> bool:
    return found["value"] is not None and found["value"] >= MARGIN and found["low"] > 0


def _measure(numbers: Mapping[str, Any]) -> str:
    return "accuracy" if numbers["data"]["task"] == "classes" else "R²"


def _decay(numbers: Mapping[str, Any]) -> str:
    decay, what = numbers["decay"], _measure(numbers)
    own, later = decay["first_own"], decay["first_later"]
    course = (
        f"has {points(own['value'])}% {what} {interval(own)} in the first period (n = {own['n']:,}) and "
        f"{points(later['value'])}% {interval(later)} on average later (n = {later['n']:,})"
    )
    if "ageing" not in decay:
        return (
            f"The logged model {course}. Without a model to train there is no oracle, so the model's age cannot be "
            f"told from harder data. {_trivial(numbers)}"
        )
    tas, age, hard = decay["tas"], decay["ageing"], decay["harder"]
    blame = {
        "model": "It is the model that ages: new models stay as good as before, old ones do not.",
        "data": "It is the data that get harder: new models lose as much as old ones, and retraining does not bring it "
        "back.",
        "both": "It is both: old models fall behind new ones, and new ones are not as good as they were.",
        "neither": "Neither ages the model nor do the data get harder by two points or more.",
        "unknown": "Not even new models surely explain anything of the target, so there is no quality that could "
        "decay, and what follows means little.",
    }[verdict(decay)]
    ages = decay["loss_by_age"]["ages"]
    far = ages[len(ages) // 2]
    return (
        f"The model of the first period {course}. {blame} An old model is {points(age['value'])} points "
        f"{interval(age)} behind a new one: {points(ages[0]['value'])} after one period, {points(far['value'])} after "
        f"{1 + len(ages) // 2}. {_fresh(hard)} "
        f"TAS = {_plain(tas)} (n = {tas['n']} models; 1 is no loss by age). {_trivial(numbers)}"
    )


def _trivial(numbers: Mapping[str, Any]) -> str:
    """The trivial baseline, and a caution where the model does not beat it."""
    found, what = numbers["baseline"], _measure(numbers)
    own, above = found.get("fresh", found["first_own"]), found["above"]
    ratio = f", TAS = {_plain(found['tas'])}" if "tas" in found else ""
    text = f"Trivial baseline ({found['protocol']}): {points(own['value'])}% {what} {interval(own)}{ratio}. "
    if above["low"] is None or above["low"] > 0:
        return text.rstrip()
    return text + (
        f"Caution: the model is not significantly better than the baseline in its own period "
        f"({points(above['value'], True)} points {interval(above)}), so TAS, SH and DH say little about it."
    )


def _fresh(hard: Mapping[str, Any]) -> str:
    if hard["value"] is None:
        return "New models have no score in one half of the time, so whether the data get harder cannot be said."
    return (
        f"New models change by {points(-hard['value'], True)} points [{points(-hard['high'])}, {points(-hard['low'])}] "
        "from the first to the second half of the time."
    )


def _horizons(numbers: Mapping[str, Any]) -> str:
    decay, data = numbers["decay"], numbers["data"]
    unit = data["unit"]
    length = f" ({data['length']})" if data["length"] else ""
    evident = _evident(decay["dh"], unit, len(data["periods"]) - 1)
    if "sh" not in decay:
        return f"{evident[:-1]}{length}. How long it is valid (SH) needs an oracle, and a log has none."
    sh, delta = decay["sh"], decay["matrix"]["delta"]
    if sh["value"] is None:
        return f"How long a model is valid (SH) is not known: some period has no new model of any skill. {evident}"
    bound = f", {sh['censored']} of them until the data end: a lower bound" if sh["censored"] else ""
    return (
        f"A model keeps {100 * delta:g}% of a new model's {_measure(numbers)} for {sh['value']:.1f} {unit} "
        f"{interval(sh, 1)} on average{length} (SH; n = {sh['n']} models{bound}{_chance(sh)}); the shortest for "
        f"{decay['sh_minimum']['value']:.0f}. {evident}"
    )


def _evident(dh: Mapping[str, Any], unit: str, most: int) -> str:
    if dh["value"] is None:
        return "When decay becomes evident (DH) is not known: no model has a score in all the periods it takes."
    text = (
        f"Decay becomes evident after {dh['value']:.1f} {unit} {interval(dh, 1)} on average (DH: accumulated drops "
        f"beyond noise and 1 point exceed 15 points; n = {dh['n']}"
    )
    never = f", {dh['censored']} never, counted as one more than {dh.get('horizon', most)}" if dh["censored"] else ""
    return f"{text}{never}{_chance(dh)})."


def _chance(horizon: Mapping[str, Any]) -> str:
    """The false-alarm rate of a horizon in words."""
    return f"; by chance alone it would end for {horizon['false_alarm']:.0%} of models"


def _shift(numbers: Mapping[str, Any]) -> str:
    if "shift" not in numbers:
        return "No features were given, so nothing can be said about the inputs."
    shift = numbers["shift"]
    rows, overall = shift["features"], shift["overall"]
    clocks = _clocks(numbers["data"])
    changed = [row for row in rows if row["changed"]]
    aucs = {name: part["auc"] for name, part in shift["periods"].items()}
    far = max(aucs, key=lambda name: aucs[name]["value"])
    named = "; ".join(f"'{row['feature']}' by {row['largest']:.2f} at {row['largest_at']}" for row in changed[:3])
    text = (
        f"{clocks}Inputs: {len(changed)} of {len(rows)} features moved by 0.1 or more from the first period (distance "
        f"from 0 to 1, adjusted p < 0.05){f': {named}' if named else ''}. A classifier tells the first period from "
        f"{far} with AUC {aucs[far]['value']:.2f} [{aucs[far]['low']:.2f}, {aucs[far]['high']:.2f}] (0.5 is chance). "
    )
    return text + _conditional(numbers, overall, shift["where"])


def _clocks(data: Mapping[str, Any]) -> str:
    """A warning about features by which a model knows the time or the row."""
    if not (clocks := data["says_when"]):
        return ""
    named, others = ", ".join(f"'{name}'" for name in clocks), [one for one in data["features"] if one not in clocks]
    way = f'leave out what a model should not go by: --features "{",".join(others)}"' if others else "is that meant?"
    return f"Mind {named}: it tells when a row was made, or which row it is, so that all later rows look new; {way}. "


def plain(policy: str) -> str:
    """What a policy does, by its name.

    >>> plain("every-4")
    'retrain every 4 periods, on all rows so far'
    """
    kind, _, rest = policy.partition("-")
    said = {
        "never": "train once, never again",
        "all": "retrain each period, on all rows so far",
        "window": f"retrain each period, on the last {rest}",
        "every": f"retrain every {rest} periods, on all rows so far",
        "trivial": "baseline: no model, the most frequent class, or the mean, of all rows so far",
    }
    fires = "the online TAS falls below 0.95" if rest == "online-tas" else f"the detector {rest} fires"
    return said.get(kind, f"retrain when {fires}, on the latest periods")


def _conditional(numbers: Mapping[str, Any], overall: Mapping[str, Any], where: list[Any]) -> str:
    if not overall["periods"]:
        parts = numbers["shift"]["periods"].values()
        if any(part["overlap"] >= 0.5 for part in parts):
            n = max(part["n_first"] for part in parts)
            return f"The first period holds out too few rows (n = {n}) to compare errors at equal inputs."
        return "No later period overlaps enough with the first to compare errors at equal inputs."
    total, mix, rest = (overall[name] for name in ("total", "covariate", "conditional"))
    along = [row for row in where if row["p"] < 0.05 and row["spread"] >= MARGIN]
    place = f", most unevenly along '{along[0]['feature']}' (worst {along[0]['worst']})" if along else ""
    meaning = {
        "concept": "The relation between inputs and target changed.",
        "noise": "Equal inputs became harder to answer, for new models too: noise, or a feature that is missing.",
        "covariate": "The inputs moved; a change of their relation to the target of two points or more is not certain.",
        "none": "Neither the inputs nor, as far as is certain, the relation changed by much.",
        "unknown": "",
    }[kind(numbers)]
    return (
        f"Answers: of the {points(total['value'])} points that the first model lost, {points(mix['value'])} "
        f"{interval(mix)} come with the new mix of inputs and {points(rest['value'])} {interval(rest)} arise at "
        f"equal inputs{place} ({overall['periods']} of {overall['of']} later periods overlap enough; "
        f"n = {rest['n']:,}). {meaning}"
    )


def _policy(numbers: Mapping[str, Any]) -> str:
    if "policies" not in numbers:
        alarms = numbers.get("log_alarms", {})
        told = "; ".join(f"{name}: {', '.join(where[:5]) or 'never'}" for name, where in alarms.items())
        return f"{'. '.join(numbers['skipped'])}." + (f" Detectors would have fired in: {told}." if told else "")
    rows = {row["policy"]: row for row in numbers["policies"]}
    advice = numbers["recommendation"]
    chosen, best, never = rows[advice["policy"]], rows[advice["best"]], rows["never"]
    gain = chosen["quality"]["value"] - never["quality"]["value"]
    quality = chosen["quality"]
    reason = (
        "it is the best"
        if chosen is best
        else f"it is {points(chosen['behind']['value'])} points {interval(chosen['behind'])} behind the best "
        f"({advice['best']}, {points(best['quality']['value'])}%), and trains on "
        f"{chosen['rows']:,} rows instead of {best['rows']:,}"
    )
    skipped = f" {'. '.join(numbers['skipped'])}." if numbers.get("skipped") else ""
    if chosen["above_trivial"]["low"] is not None and chosen["above_trivial"]["low"] <= 0:
        skipped += (
            f" Caution: it is not significantly better than the trivial baseline, a constant answer "
            f"({points(rows['trivial']['quality']['value'])}%)."
        )
    return (
        f"Recommended: {advice['policy']} ({plain(advice['policy'])}). In the replay it reaches "
        f"{points(quality['value'])}% {_measure(numbers)} "
        f"{interval(quality)} (n = {quality['n']:,}) with {_times(chosen['retrainings'])}, {points(gain, True)} "
        f"points {interval(chosen['gained'])} against never retraining ({points(never['quality']['value'])}%): "
        f"{reason}. The rule: {advice['rule']}.{skipped}"
    )
