"""What does not fit together is refused before any work."""

from __future__ import annotations

import pytest

from driftline.engine.planning.plan import plan
from driftline.errors import UserError
from driftline.spec import parse


def test_a_setting_without_effect_is_refused_in_each_entry_of_a_method() -> None:
    methods = [{"name": "erm", "lr": 0.1}, "erm"]
    spec = {"benchmark": "timeline", "data": "digits", "model": "logistic-regression", "methods": methods}
    with pytest.raises(UserError, match=r"erm\.lr has no effect: logistic-regression is not trained by gradients"):
        plan(parse(spec))
