"""What happens along a stream of images: where its corruption changes, and where a method resets itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from driftline.report.analysis.groups import Group


def changes(group: Group) -> dict[int, str]:
    """Return after how many images another corruption begins, with its name, empty where seeds differ."""
    schedules = [run.card.protocol.get("schedule") for run in group.runs]
    if any(schedule is None or schedule["mixed"] for schedule in schedules):
        return {}
    images, per_point = group.options["images"], group.options["images_per_point"]
    found = [_begin(schedule["order"], schedule["paths"], images, per_point) for schedule in schedules if schedule]
    return {
        at: name if all(other.get(at) == name for other in found) else ""
        for at, name in found[0].items()
        if at and all(at in other for other in found)
    }


def _begin(order: list[str], paths: dict[str, list[object]], images: int, per_point: int) -> dict[int, str]:
    """Return where each part of a schedule begins; after the last part comes the first.

    >>> _begin(["fog", "snow"], {"fog": [[1, 0], [2, 0]], "snow": [[1, 0]]}, 50, 10)
    {0: 'fog', 20: 'snow', 30: 'fog'}
    """
    begins: dict[int, str] = {}
    at = 0
    for name in cycle(order):
        if at >= images:
            return begins
        begins[at] = name.partition(" (")[0].partition(" > ")[0].replace("_", " ")
        at += per_point * len(paths[name])
    return begins


def resets(group: Group, method: str) -> list[int]:
    """Return after how many images a method returns to its first state; empty if it does not, or seeds differ."""
    found = {_resets_of(run.card.run.method.settings, run.card.run.options) for run in group.runs_of(method)}
    return list(found.pop()) if len(found) == 1 else []


def marks_note(group: Group, methods: Iterable[str]) -> str:
    """Return what dashed lines and triangles in a chart of these methods mean, if there are any."""
    dashed = " Dashed: another corruption begins." if changes(group) else ""
    return dashed + (" Triangles: resets." if any(resets(group, method) for method in methods) else "")


def _resets_of(settings: dict[str, object], options: dict[str, object]) -> tuple[int, ...]:
    """Return the resets of a run.

    >>> _resets_of({"reset_every": 3}, {"batch": 10, "images": 90})
    (30, 60)
    """
    steps, batch, images = settings.get("reset_every"), options.get("batch"), options.get("images")
    if not (isinstance(steps, int) and isinstance(batch, int) and isinstance(images, int)):
        return ()
    return tuple(range(steps * batch, images, steps * batch))
