"""The site: pages, notebooks that are played, the commands' help and the API, built without a network.

`make docs` runs it. Notebooks are Python files in docs/tutorials (jupytext's percent format); they are executed and
become Markdown before the generator sees them, as not every generator can read notebooks.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
COMMANDS = ("audit", "run", "watch", "report", "serve", "demo")
WITH_ALL = ("audit", "run", "watch")
TERMINAL = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}


def main() -> None:
    """Make the pages, play the notebooks, and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notebooks", choices=("play", "skip"), default="play", help="skip: their text alone")
    played = parser.parse_args().notebooks == "play"
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("*.py"))
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        target = PAGES / "project" / f"{name.lower()}.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text(re.sub(r"\]\(docs/", "](../", text), encoding="utf-8")
    # What tells how to do a thing is found first.
    for page in (PAGES / "how-to").glob("*.md"):
        page.write_text(f"---\nsearch:\n  boost: 4\n---\n{page.read_text(encoding='utf-8')}", encoding="utf-8")
    (PAGES / "reference" / "commands.md").write_text(commands(), encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda path: notebook(path, played), sorted((ROOT / "docs" / "tutorials").glob("*.py"))))
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    subprocess.run(build, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    site = SITE.relative_to(ROOT)
    sys.stdout.write(f"Wrote {site}/index.html. With its search box:  {sys.executable} -m http.server -d {site}\n")


def commands() -> str:
    """The help of every command, whole."""
    parts = ["# Commands\n\nWhat `swapcal COMMAND --help-all` prints.\n"]
    for name in COMMANDS:
        asked = [sys.executable, "-m", "swapcal.cli", name, "--help-all" if name in WITH_ALL else "--help"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=ROOT, env=TERMINAL)
        parts.append(f"## swapcal {name}\n\n```text\n{done.stdout.strip()}\n```\n")
    return "\n".join(parts)


def notebook(path: Path, played: bool) -> None:
    """One notebook as Markdown, with its pictures beside it."""
    target = PAGES / "tutorials"
    whole = target / f"{path.stem}.ipynb"
    execute = ["--execute"] if played else []
    subprocess.run(
        [sys.executable, "-m", "jupytext", "--quiet", "--to", "ipynb", *execute, "-o", str(whole), str(path)],
        check=True, cwd=path.parent,
    )  # fmt: skip
    convert = [sys.executable, "-m", "nbconvert", "--log-level=ERROR", "--to", "markdown", str(whole)]
    subprocess.run(convert, check=True, cwd=target)


if __name__ == "__main__":
    main()
