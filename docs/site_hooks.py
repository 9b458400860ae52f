"""What mkdocs cannot know: the order of the guides, and that docs/ lies in a repository."""

import logging
import posixpath
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository", "").rstrip("/")
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
log = logging.getLogger("mkdocs.hooks")  # its warnings end a strict build


def on_config(config):
    """Put the guides into the navigation: a section for each line of the README's table, then the rest."""
    start, *reference = config.nav
    guides, listed = [], set(re.findall(r"\w+\.md", repr(config.nav)))
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Read on")[2]
    for task, pages in re.findall(r"^\| (?!you want)([^|]+) \| ([^|]+) \|$", table, re.MULTILINE):
        found = [(title, page.removeprefix("docs/")) for title, page in LINK.findall(pages)]
        section = [{_title(title): page} for title, page in found if page not in listed]
        listed |= {page for _, page in found}
        guides += [{_title(task): section}] if section else []
    rest = sorted(path.name for path in Path(config.docs_dir).glob("*.md") if path.name not in listed)
    config.nav = [start, *guides, *([{"More": rest}] if rest else []), *reference]
    return config


def _title(words):
    return words[:1].upper() + words[1:]


def on_page_markdown(markdown, page, **_):
    """Lead links out of docs/ to the repository. Where it has no address, name the path instead."""

    def outside(link):
        text, target = link.groups()
        path, _, anchor = target.partition("#")
        inside = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), path))
        if "://" in target or not path or inside.startswith("docs/"):
            return link.group()
        if not (ROOT / inside).exists():
            log.warning("%s links to %s, which is not in the repository", page.file.src_uri, target)
        if REPOSITORY:
            return f"[{text}]({REPOSITORY}/blob/main/{inside}{'#' + anchor if anchor else ''})"
        return text if text.strip("`/") == inside else f"{text} (`{inside}`)"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)  # code stays as it is
    return "".join(part if i % 2 else LINK.sub(outside, part) for i, part in enumerate(parts))
