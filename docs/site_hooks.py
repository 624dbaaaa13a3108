"""Pages of the documentation site that are made while it is built: root documents, notebooks, API and gallery.

`./dev docs` builds the site. Links work in the repository as they are written; here they get the names of the site.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "build" / "gallery"
DOCUMENTS = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
API = {
    "Run": {
        "run": "engine.run.run",
        "plan": "engine.costs.forecast.forecast",
        "load": "record.run.load",
        "Record": "record.run.Record",
    },
    "Tables and figures": {
        "table": "report.tables.make.table",
        "Record.table": "report.tables.make.make_tables",
        "figure": "report.figures.make.figure",
    },
    "Audit": {"audit": "auditing.run.audit", "AuditResult": "auditing.result.AuditResult"},
    "Extend": {
        "register": "registry.register",
        "Learner": "learners.base.Learner",
        "check_learner": "testing.check_learner",
    },
    "Types": {"Samples": "types.Samples", "Answers": "types.Answers", "Reveal": "types.Reveal"},
}
LINK = re.compile(r"\[([^]]*)\]\((?!https?:|#|mailto:|data:)([^)#\s]+)(#[^)]*)?\)")
FETCHED = re.compile(r'<script src="https?://[^"]*"></script>')
ON_SITE = (".md", ".png", ".svg")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not files of docs/."""
    from mkdocs.structure.files import File

    files.remove(files.get_file_from_path("index.md"))  # the README is the first page, and the list of pages another
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    for picture in sorted(GALLERY.glob("*/*.svg")):
        name = f"gallery/{picture.relative_to(GALLERY).as_posix()}"
        files.append(File.generated(config, name, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Give links their names on the site, and a benchmark's page its pictures."""
    benchmark = page.file.src_uri.removesuffix(".md")
    pictures = gallery(benchmark, "###")
    return site_links(markdown) + (f"\n## Figures of a small run\n\n{pictures}" if pictures else "")


def on_post_page(output: str, **_: Any) -> str:
    """Remove the one script that the theme would fetch; without it, search needs a server."""
    return FETCHED.sub("", output)


def on_post_template(output_content: str, **_: Any) -> str:
    """Remove it from the page for missing addresses, too."""
    return FETCHED.sub("", output_content)


def pages() -> dict[str, str]:
    """Return the pages that are made, by their name on the site."""
    made = {site: (ROOT / name).read_text(encoding="utf-8") for name, site in DOCUMENTS.items()}
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        made[f"notebook-{path.stem}.md"] = notebook(path)
    made["api.md"] = "# Python\n" + "".join(_section(title, names) for title, names in API.items())
    made["gallery.md"] = "# Gallery of figures\n\nMade by `docs/gallery.py` from small runs of each benchmark.\n"
    for folder in sorted(GALLERY.glob("*/")):
        made["gallery.md"] += f"\n## {folder.name}\n\n{gallery(folder.name, '###')}"
    return made


def site_links(markdown: str) -> str:
    """Return a text whose links name the pages of the site; a file that is not on the site keeps only its text.

    >>> site_links("[a](../README.md) [b](docs/audit.md#x) [c](examples/owner.ipynb) [d](https://x.org/README.md)")
    '[a](index.md) [b](audit.md#x) [c](notebook-owner.md) [d](https://x.org/README.md)'
    >>> site_links("[results](../results/README.md)")
    'results'
    >>> site_links("![A picture](docs/report.png) by [its script](docs/screenshot.py)")
    '![A picture](report.png) by its script'
    """

    def rename(match: re.Match[str]) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        target = path.removeprefix("../").removeprefix("docs/")
        target = "docs/index.md" if target == "index.md" else target
        if target.endswith(".ipynb"):
            target = f"notebook-{Path(target).stem}.md"
        site = DOCUMENTS.get(target, target)
        return f"[{text}]({site}{anchor})" if site.endswith(ON_SITE) and "/" not in site else text

    return LINK.sub(rename, markdown)


def notebook(path: Path) -> str:
    """Return the cells of a notebook as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_output(one) for one in cell.get("outputs", [])]
    return "\n\n".join([*parts, f"This page is `examples/{path.name}`, which runs as it is."])


def _output(output: dict[str, Any]) -> str:
    """Return what a cell shows: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![Chart](data:image/png;base64,{data['image/png']})"
    if "text/html" in data:
        return "".join(data["text/html"]).replace("\n", " ")
    return f"```text\n{''.join(output.get('text') or data.get('text/plain', []))}\n```"


def gallery(benchmark: str, level: str) -> str:
    """Return the pictures of a benchmark with their titles; empty without pictures."""
    pictures = sorted((GALLERY / benchmark).glob("*.svg"))
    return "\n\n".join(_picture(benchmark, picture.stem, level) for picture in pictures)


def _picture(benchmark: str, figure: str, level: str) -> str:
    picture = f"![{benchmark}: {figure}](gallery/{benchmark}/{figure}.svg)"
    return f"{level} {figure}\n\n`driftline figure {figure}`\n\n{picture}"


def _section(title: str, names: dict[str, str]) -> str:
    parts = (f"::: driftline.{name}\n    options:\n      heading: {public}\n" for public, name in names.items())
    return f"\n## {title}\n\n" + "\n\n".join(parts)
