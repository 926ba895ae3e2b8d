"""`python counts.py NAME COMMAND...`: run a command, and put its last line into the counts of docs/reliability.md.

The row of that name is made anew, or added as the last one; the exit code is the command's.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
HEAD = "## Counts of the last run\n"


def record(name: str, command: str, counted: str, page: Path = PAGE) -> None:
    """Put a row into the table."""
    before, head, rest = page.read_text(encoding="utf-8").partition(HEAD)
    table, end, after = rest.partition("\n## ")
    rows, row = table.rstrip("\n").split("\n"), f"| {name} | `{command}` | {counted} |"
    places = [k for k, each in enumerate(rows) if each.startswith(f"| {name} |")]
    rows[places[0] if places else len(rows) :] = [row, *(rows[places[0] + 1 :] if places else [])]
    page.write_text(before + head + "\n".join(rows) + "\n" + end + after, encoding="utf-8")


def main(name: str, *command: str) -> int:
    """Run it, show what it says, and write the last line down."""
    lines = [""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines += [line.strip()] if line.strip() else []
    if not run.returncode:
        # Times and colors are not counts.
        counted = re.sub(r"\x1b\[[0-9;]*m| in [\d.]+s.*", "", lines[-1]).strip("= ")
        shown = [Path(command[0]).name, *command[1:]]
        record(name, shlex.join(shown), counted)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
