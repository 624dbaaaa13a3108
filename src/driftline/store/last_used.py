"""Last use of each version of a user's file; reusing a run counts.

Each version has a small file in `used/`. Without it, the last use is the latest run made with that version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from driftline.errors import DamagedFile, DiskError
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import Run
from driftline.store.store import Store


def mark_used(store: Store, versions: Iterable[tuple[str, str]]) -> None:
    """Record that these versions of users' files, (name, hash), are used now; errors of the disk are ignored."""
    now = datetime.now(UTC).isoformat()
    for name, content in versions:
        path = _note_path(store.folder, name, content)
        with suppress(DiskError):
            write_checked(path, {"file": name, "content": content, "used": now})
            if store.remote is not None:
                store.remote.upload(f"used/{path.name}")


def last_used(run: Run, name: str) -> datetime:
    """Return when the version of a file behind a run was last used, as far as the run and its store know."""
    with suppress(DamagedFile):
        note = read_checked(_note_path(run.folder.parents[1], name, run.common.user_files[name]))
        return max(run.finished_at, datetime.fromisoformat(note["used"]))
    return run.finished_at


def _note_path(folder: Path, name: str, content: str) -> Path:
    return folder / "used" / f"{hashlib.sha256(f'{content} {name}'.encode()).hexdigest()[:16]}.json"
