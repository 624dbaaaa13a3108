"""Tables as Markdown, LaTeX or CSV."""
