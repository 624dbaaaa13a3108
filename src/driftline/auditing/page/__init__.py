"""The page of an audit: verdict, charts, tables. It is made from the result only, and needs the extra `figures`."""

import driftline.report.figures  # noqa: F401  # raises MissingExtra if the extra is not installed
