"""Finished runs in the formats of other tools, one file per sink.

A sink is registered as `@register("sink", NAME)`; to add one, add its file to this package.
"""

from driftline.exports.base import Sink, create, export

__all__ = ["Sink", "create", "export"]
