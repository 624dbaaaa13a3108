"""The card of a run: what is not a card is damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.errors import DamagedFile
from driftline.io.checksums import write_checked
from driftline.record.card import CARD, read_card


def test_a_card_with_an_invalid_field_is_damaged(tmp_path: Path) -> None:
    write_checked(tmp_path / CARD, {"key": ["k"]})
    with pytest.raises(DamagedFile, match=r"invalid field \('key',\)"):
        read_card(tmp_path)
