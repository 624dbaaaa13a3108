"""`python -m driftline` is the command line too."""

from driftline.cli.main import main

main()
