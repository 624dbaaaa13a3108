"""Queries and headlines in sets that share their classes: one set is upstream, the others are clusters.

`intent-clusters`: Larson et al., "An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction", EMNLP
2019 (CLINC150). To ask for the intent would make every cluster one of new classes, on which no upstream model can be
right. Asked for is the domain: upstream are some intents of every domain, and each cluster has other intents of every
domain. The file does not name the domains; the table is the authors' (domains.json in clinc/oos-eval). Queries that are
out of scope have no domain and are left out.

`news-clusters`: headlines of HuffPost (Misra, "News Category Dataset", 2022). Asked for is one of five coarse classes;
which section belongs to which, and to which set, is our choice. Instead of sections, years can be the sets.

A text that occurs a second time is left out, so that none is in two sets, or in both training and test data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.clinc150 import ADVICE, EXPECTED, FILES, Query, read_queries
from driftline.data.huffpost import huffpost
from driftline.errors import UserError, unknown_name
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Samples

DOMAINS = {
    "banking": "freeze_account routing pin_change bill_due pay_bill account_blocked interest_rate min_payment "
    "bill_balance transfer order_checks balance spending_history transactions report_fraud",
    "credit cards": "replacement_card_duration expiration_date damaged_card improve_credit_score report_lost_card "
    "card_declined credit_limit_change apr redeem_rewards credit_limit rewards_balance application_status credit_score "
    "new_card international_fees",
    "kitchen and dining": "food_last confirm_reservation how_busy ingredients_list calories nutrition_info recipe "
    "restaurant_reviews restaurant_reservation meal_suggestion restaurant_suggestion cancel_reservation "
    "ingredient_substitution cook_time accept_reservations",
    "home": "what_song play_music todo_list_update reminder reminder_update calendar_update order_status "
    "update_playlist shopping_list calendar next_song order todo_list shopping_list_update smart_home",
    "auto and commute": "current_location oil_change_when oil_change_how uber traffic tire_pressure "
    "schedule_maintenance gas mpg distance directions last_maintenance gas_type tire_change jump_start",
    "travel": "plug_type travel_notification translate flight_status international_visa timezone exchange_rate "
    "travel_suggestion travel_alert vaccines lost_luggage book_flight book_hotel carry_on car_rental",
    "utility": "weather alarm date find_phone share_location timer make_call calculator definition "
    "measurement_conversion flip_coin spelling time roll_dice text",
    "work": "pto_request_status next_holiday insurance_change insurance meeting_schedule payday taxes income "
    "rollover_401k pto_balance pto_request w2 schedule_meeting direct_deposit pto_used",
    "small talk": "who_made_you meaning_of_life who_do_you_work_for do_you_have_pets what_are_your_hobbies fun_fact "
    "what_is_your_name where_are_you_from goodbye thank_you greeting tell_joke are_you_a_bot how_old_are_you "
    "what_can_i_ask_you",
    "meta": "change_speed user_name whisper_mode yes change_volume no change_language repeat change_accent cancel "
    "sync_device change_user_name change_ai_name reset_settings maybe",
}
DOMAIN_OF = {intent: k for k, intents in enumerate(DOMAINS.values()) for intent in intents.split()}

SECTIONS = {
    "affairs": (("POLITICS",), ("U.S. NEWS",), ("WORLD NEWS", "WORLDPOST", "THE WORLDPOST"), ("CRIME",)),
    "culture": (
        ("ENTERTAINMENT",),
        ("COMEDY",),
        ("SPORTS", "CULTURE & ARTS", "ARTS & CULTURE", "ARTS"),
        ("MEDIA", "WEIRD NEWS"),
    ),
    "living": (
        ("STYLE & BEAUTY", "STYLE", "PARENTING", "PARENTS"),
        ("HOME & LIVING", "WEDDINGS"),
        ("FOOD & DRINK", "TASTE", "TRAVEL"),
        ("WELLNESS", "HEALTHY LIVING", "MONEY"),
    ),
    "voices": (("QUEER VOICES",), ("BLACK VOICES",), ("WOMEN",), ("RELIGION", "LATINO VOICES")),
    "knowledge": (("ENVIRONMENT", "GREEN"), ("SCIENCE", "TECH"), ("BUSINESS",), ("IMPACT", "EDUCATION", "COLLEGE")),
}
"""Of each class the sections that are upstream, and those in each cluster."""
ALL_SECTIONS_HINT = "the file must have all sections, as News_Category_Dataset_v3.json has"
SETS = ("upstream sections", "sections 1", "sections 2", "sections 3")


@register("dataset", "intent-clusters")
def intent_clusters(
    folders: Sequence[Path],
    *,
    upstream: int = 5,  # number of upstream intents of each domain
    clusters: int = 5,  # number of clusters of the other intents
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """Queries to an assistant and their domain; of each domain `upstream` intents are upstream.

    Its other intents are dealt out to `clusters` sets, `seed` deciding which is where. Upstream queries that the file
    has for validation and test are never trained on.
    """
    path = locate(folders, FILES, "intent-clusters", ADVICE)
    found, again = read_queries(path)
    _check_domains(path, found)
    sets = divide_intents(sorted({query.intent for query in found}), upstream, clusters, seed)
    place = {intent: k for k, intents in enumerate(sets) for intent in intents}
    group = np.array([place[query.intent] for query in found], np.int64)
    samples = Samples(
        x=[query.text for query in found],
        y=np.array([DOMAIN_OF[query.intent] for query in found], np.int64),
        id=np.array([query.id for query in found], dtype=object),
        time=np.zeros(len(found), np.int64),
        group=group,
    )
    test = (group == 0) & np.array([query.part != "train" for query in found])
    names = ("upstream intents", *(f"intents {k + 1}" for k in range(clusters)))
    notes = [f"{len(found):,} queries of {len(place)} intents in {path.name}; the answer is the domain, one of 10"]
    notes += [f"{name}: {', '.join(intents)}" for name, intents in zip(names, sets, strict=True)]
    notes += [f"{again:,} queries that came before are left out"] if again else []
    task = Classification(tuple(DOMAINS))
    marked = test if test.any() and not test.all() else None
    return Dataset("intent-clusters", samples, task, tuple(notes), "hashed-ngrams", test=marked, clusters=names)


def divide_intents(intents: Sequence[str], upstream: int, clusters: int, seed: int = 0) -> list[list[str]]:
    """Return the intents of each set, upstream first; every set has some of every domain.

    >>> [len(intents) for intents in divide_intents(list(DOMAIN_OF), 5, 4)]
    [50, 30, 30, 20, 20]
    """
    if upstream < 1 or clusters < 1:
        raise UserError(f"intent-clusters: upstream={upstream} and clusters={clusters}, but both must be 1 or more")
    sets: list[list[str]] = [[] for _ in range(1 + clusters)]
    for k, domain in enumerate(DOMAINS):
        found = sorted(intent for intent in intents if DOMAIN_OF[intent] == k)
        if len(found) < upstream + clusters:
            raise UserError(
                f"intent-clusters: the domain '{domain}' has {len(found)} intents, too few for upstream={upstream} and "
                f"one in each of clusters={clusters}"
            )
        order = Seed(seed).child("intent-clusters", domain).numpy().permutation(len(found))
        for chosen, rows in zip(sets, [order[:upstream], *np.array_split(order[upstream:], clusters)], strict=True):
            chosen += [found[row] for row in rows]
    return sets


def _check_domains(path: Path, found: Sequence[Query]) -> None:
    with file_errors(path, EXPECTED):
        for query in found:
            if query.intent not in DOMAIN_OF:
                entry = f"entry {query.position} of {query.part}"
                raise ValueError(f"{query.intent!r} as the intent in {entry}, which is in none of the 10 domains")


@register("dataset", "news-clusters")
def news_clusters(
    folders: Sequence[Path],
    *,
    by: Literal["sections", "years"] = "sections",  # what the clusters are: other sections, or later years
    first: int = 2018,  # years: the first cluster
    last: int = 2022,  # years: the last cluster
    max_per_section: int | None = 1000,  # maximum number of headlines of a section, and with years in a year
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """Headlines and which of five kinds of news they are; other sections, or later years, are the clusters."""
    if by not in ("sections", "years"):
        raise unknown_name("way to make clusters of news", by, ("sections", "years"))
    if max_per_section is not None and max_per_section < 1:
        raise UserError(f"news-clusters: max_per_section={max_per_section}, but it must be 1 or more, or null for all")
    data = huffpost(folders, categories="all", first=first, last=last)
    samples, found = data.samples, data.task.classes  # type: ignore[attr-defined]
    place = {s: (k, g) for k, sets in enumerate(SECTIONS.values()) for g, names in enumerate(sets) for s in names}
    kind, of_section = (np.array([place.get(name, (-1, -1))[n] for name in found])[samples.y] for n in (0, 1))
    group, names = (of_section, SETS) if by == "sections" else _years(np.asarray(samples.time))
    once = np.zeros(len(samples), bool)
    once[np.unique(np.array(samples.x, dtype=object), return_index=True)[1]] = True
    kept = _draw_rows(once & (kind >= 0), samples.y, group, max_per_section, Seed(seed).child("news-clusters"))
    _check_shared_classes(kind[kept], group[kept], names)
    taken = samples[kept]
    chosen = Samples(x=taken.x, y=kind[kept], id=taken.id, time=taken.time, group=group[kept])
    limit = f", at most {max_per_section:,} of a section in a set" if max_per_section else ""
    notes = [f"{len(kept):,} of {len(samples):,} headlines in lower case{limit}"]
    notes += [f"{(~once).sum():,} headlines that came before are left out"] if not once.all() else []
    task = Classification(tuple(SECTIONS))
    return Dataset("news-clusters", chosen, task, tuple(notes), "hashed-ngrams", clusters=names)


def _years(time: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    years = time.astype("datetime64[Y]").astype(np.int64) + 1970 if time.dtype.kind == "M" else time
    found, group = np.unique(years, return_inverse=True)
    return group.astype(np.int64), tuple(str(year) for year in found)


def _draw_rows(
    usable: np.ndarray, section: np.ndarray, group: np.ndarray, max_per_section: int | None, seed: Seed
) -> np.ndarray:
    """Return rows of at most `max_per_section` usable samples of each section in each set, in their order."""
    rows = []
    for s, g in sorted(set(zip(section[usable].tolist(), group[usable].tolist(), strict=True))):
        candidates = np.flatnonzero(usable & (section == s) & (group == g))
        rows.append(seed.child(s, g).numpy().permutation(candidates)[:max_per_section])
    return np.sort(np.concatenate(rows)) if rows else np.zeros(0, np.int64)


def _check_shared_classes(kind: np.ndarray, group: np.ndarray, names: tuple[str, ...]) -> None:
    """Refuse empty sets, and classes without upstream samples, which a model could not know."""
    for g, name in enumerate(names):
        if not (group == g).any():
            raise UserError(f"news-clusters: no headline for the set '{name}' (options by, first, last)")
    for k, name in enumerate(SECTIONS):
        if not ((kind == k) & (group == 0)).any():
            raise UserError(
                f"news-clusters: no upstream headline of the class '{name}' in {names[0]}: {ALL_SECTIONS_HINT}"
            )
