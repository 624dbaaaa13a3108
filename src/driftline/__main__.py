"""Entry point of `python -m driftline`."""

from driftline.cli.main import main

main()
