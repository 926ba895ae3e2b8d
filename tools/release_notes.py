"""The notes of a release: the section of CHANGELOG.md that has its version.

python tools/release_notes.py 0.2.0 > notes.md
"""

import argparse
import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def notes(text: str, version: str) -> str:
    r"""What stands under `## [version]`, up to the next such heading; KeyError if there is none or it is empty.

    Examples
    --------
    >>> notes("# Changelog\n\n## [0.2.0] - 2030-01-01\n\n- New.\n\n## [0.1.0]\n\n- First.\n", "0.2.0")
    '- New.\n'
    """
    parts = re.split(r"^## \[([^\]]+)\].*\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = sections.get(version, "").strip()
    if not found:
        raise KeyError(f"CHANGELOG.md has no section [{version}]; it has {', '.join(sections) or 'none'}")
    return found + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="for example 0.2.0, or Unreleased")
    version = parser.parse_args().version
    try:
        sys.stdout.write(notes(CHANGELOG.read_text(encoding="utf-8"), version))
    except KeyError as error:
        sys.stderr.write(f"{error.args[0]}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
