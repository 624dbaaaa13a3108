"""Specs: the spec that a user writes, the jobs it expands to, and the keys of their results."""

from driftline.recipes import read_yaml
from driftline.spec.overrides import apply_overrides, similar_settings
from driftline.spec.spec import Spec, parse, read

__all__ = ["Spec", "apply_overrides", "parse", "read", "read_yaml", "similar_settings"]
