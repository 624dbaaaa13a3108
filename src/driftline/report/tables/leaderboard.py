"""Tables of leaderboards: which method to deploy if it is not known which kind of drift comes."""

from __future__ import annotations

from collections.abc import Iterator

from driftline.metrics.robust_choice import iman_davenport, nemenyi_difference
from driftline.record.run import Record
from driftline.report.analysis.leaderboard import ROPE, SLACK, Leaderboard, Spread, leaderboard
from driftline.report.analysis.matrix import require_views
from driftline.report.format import NONE, format_p
from driftline.report.tables.model import Record as CsvRecord
from driftline.report.tables.model import Table, TableRow, text_columns, text_row

COLUMNS = (
    *("largest regret", "where", "mean rank", "mean score", "lowest score", "mean regret"),
    *("choice is better", "rank at equal compute", "stand-ins"),
)
READING = (
    "Regret: points below the best method of a setting; scores are in percent. Intervals: 95% of {draws:,} draws of "
    "seeds, with settings fixed. n = {settings} settings, {seeds} seed(s) each."
)
STAND_INS = (
    "Stand-ins: settings in which the method cannot run, because they give it no labels or no trained model, say. "
    "There the model stays as it is: the score is that of the frozen model or, where nothing was trained in advance, "
    "of a constant answer."
)
CHANCE = (
    "Choice is better: the probability, by the Bayesian signed-rank test over settings, that {choice} is better by "
    "more than {rope:.0f} point."
)
EQUAL_COMPUTE = (
    "Rank at equal compute: the mean rank among methods that spend, in every setting, at most {slack} times the "
    "median multiply-accumulates of the methods that train."
)


def leaderboard_tables(record: Record) -> list[Table]:
    """Return the leaderboard of each matrix of a record."""
    return [leaderboard_table(leaderboard(view)) for view in require_views(record)]


def leaderboard_table(board: Leaderboard) -> Table:
    """Return a leaderboard as a table; its title is the answer."""
    return Table(
        title=finding(board),
        row_header="method",
        columns=text_columns(*COLUMNS),
        rows=tuple(_row(board, k) for k in board.order),
        notes=tuple(notes(board)),
        caption=f"{len(board.methods)} methods in {len(board.settings)} settings.",
        records=tuple(_records(board)),
    )


def finding(board: Leaderboard) -> str:
    """Return which method to deploy if it is not known which kind of drift comes."""
    best = board.order[0]
    return (
        f"If you do not know which kind of drift comes, deploy {board.choice}: its largest distance from the best "
        f"method of a setting is {_points(board.max_regrets[best])} points ({board.worst_settings[best]})"
    )


def notes(board: Leaderboard) -> Iterator[str]:
    """Yield what the columns mean, how sure the answer is, and why there is no Nemenyi test."""
    yield READING.format(draws=len(board.draws), settings=len(board.settings), seeds=board.scores.shape[2])
    yield _stability(board)
    if board.stands_in.any():
        yield STAND_INS
    yield CHANCE.format(choice=board.choice, rope=100 * ROPE)
    if board.ranks_at_equal_compute:
        yield EQUAL_COMPUTE.format(slack=SLACK)
    n, k = len(board.settings), len(board.methods)
    f, p = iman_davenport(board.means)
    apart = [board.methods[j] for j in range(k) if board.separated[j]]
    yield (
        f"Friedman's test (Iman and Davenport): F = {f:.2f}, p {format_p(p, relation=True)}. Nemenyi's critical "
        f"difference is {nemenyi_difference(k, n):.1f} ranks and depends on which methods are listed. Separated from "
        f"the best mean rank (Wilcoxon over settings, Holm-corrected): {', '.join(apart) or 'none'}.{board.inseparable}"
    )
    yield f"Settings: {', '.join(board.settings)}. Those that share data are not independent."
    if board.left_out:
        yield "Left out: " + "; ".join(f"{method} ({why})" for method, why in board.left_out.items()) + "."


def _stability(board: Leaderboard) -> str:
    others: dict[str, list[str]] = {}
    for setting, choice in board.choices_without.items():
        if choice != board.choice:
            others.setdefault(choice, []).append(setting)
    without = "; ".join(f"without {' or '.join(settings)}: {choice}" for choice, settings in others.items())
    return f"{board.choice} is the choice in {board.share_of_draws:.0%} of the draws of seeds" + (
        f". The choice is another one {without}." if without else ", and whichever setting is left out."
    )


def _row(board: Leaderboard, k: int) -> TableRow:
    scores, chance = board.means[:, k], "" if k == board.order[0] else f"{board.against(k).better:.0%}"
    equal = board.ranks_at_equal_compute.get(k)
    return text_row(
        board.methods[k],
        f"{_points(board.max_regrets[k])} {_interval(board.max_regrets[k], 100)}",
        board.worst_settings[k],
        f"{board.ranks[k].value:.1f} {_interval(board.ranks[k])}",
        f"{100 * scores.mean():.1f}",
        f"{100 * scores.min():.1f}",
        f"{100 * (board.means.max(axis=1) - scores).mean():.1f}",
        chance or NONE,
        NONE if equal is None else f"{equal:.1f}",
        str(int(board.stands_in[:, k].sum())),
    )


def _points(spread: Spread) -> str:
    return f"{100 * spread.value:.1f}"


def _interval(spread: Spread, factor: float = 1) -> str:
    return f"[{factor * spread.low:.1f}, {factor * spread.high:.1f}]"


def _records(board: Leaderboard) -> Iterator[CsvRecord]:
    for k in board.order:
        regret, rank = board.max_regrets[k], board.ranks[k]
        yield {
            **{"method": board.methods[k], "max_regret": regret.value, "max_regret_low": regret.low},
            **{"max_regret_high": regret.high, "where": board.worst_settings[k], "rank": rank.value},
            **{"rank_low": rank.low, "rank_high": rank.high, "mean": float(board.means[:, k].mean())},
            **{"lowest": float(board.means[:, k].min()), "stand_ins": int(board.stands_in[:, k].sum())},
            **{"settings": len(board.settings), "seeds": board.scores.shape[2]},
        }
