"""What to run: the spec that a user writes, the jobs it expands to, and the keys of their results."""

from driftline.spec.overrides import with_settings
from driftline.spec.spec import Spec, mapping, parse, read

__all__ = ["Spec", "mapping", "parse", "read", "with_settings"]
