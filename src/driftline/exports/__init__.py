"""Finished runs in the formats of other tools, one file per exporter.

An exporter is registered as `@register("exporter", NAME)`; to add one, add its file to this package.
"""

from driftline.exports.base import Exporter, create, export

__all__ = ["Exporter", "create", "export"]
