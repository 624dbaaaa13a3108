"""Reports of finished runs: analysis, tables, figures, the HTML page, and the live view."""
