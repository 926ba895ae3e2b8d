"""What has been finished: one line of JSON for each run, so that an interrupted contest goes on where it stopped."""

import json
from pathlib import Path
from typing import Any

from swapcal.errors import InvalidInput
from swapcal_benchmarks.rivals.match import Result

__all__ = ["LOG", "finished", "identity"]

LOG = "runs.jsonl"


def identity(key: dict[str, Any]) -> str:
    """A run's settings as one string."""
    return json.dumps(key, sort_keys=True)


def finished(path: Path) -> dict[str, Result]:
    """The results in the file, by identity; a last line that was cut off by a kill is taken out of the file.

    Examples
    --------
    >>> finished(Path("no such file"))
    {}
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a log of finished runs: {error}; choose another --out") from error
    whole, _, rest = text.rpartition("\n")
    if rest:
        path.write_text(whole + "\n" if whole else "", encoding="utf-8")
    found = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            result = json.loads(line)
            found[identity(result["key"])] = result
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"line {number} of {path} is not a finished run; delete the line, or choose another --out"
            ) from error
    return found
