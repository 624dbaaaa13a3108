"""Files given where a name is expected: say how a file is given, instead of listing all names."""

from __future__ import annotations

from driftline.errors import UserError

TABLES = (".csv", ".csv.gz", ".parquet")


def check_names(data: str | None, methods: str | None) -> None:
    """Stop at `--data mine.csv` and `--methods mine.py`, which newcomers type first.

    >>> check_names("table", "erm,mine.py:Mine")
    """
    if data is not None and data.endswith(TABLES):
        raise UserError(
            f"--data takes a dataset's name; a table of your own is --data table --set data.path={data} "
            "--set data.time=COLUMN --set data.target=COLUMN"
        )
    for method in (methods or "").split(","):
        if method.strip().endswith(".py"):
            raise UserError(f"say which class of {method.strip()} is the method: {method.strip()}:CLASS")
