"""Figures of finished runs, one file each: its data and its chart. They need the extra `figures`."""

from importlib.util import find_spec

from driftline.errors import MissingExtra

if not all(find_spec(package) for package in ("altair", "vl_convert", "jinja2")):
    raise MissingExtra("drawing figures", "figures")
