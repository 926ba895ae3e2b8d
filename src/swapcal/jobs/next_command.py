"""The next command to type, from the settings of a result."""

import shlex
from typing import Any

__all__ = ["next_command"]


def next_command(source: str, settings: dict[str, Any], what: str) -> str:
    """The command `swapcal run` (or another one) on the same file with the same columns.

    Examples
    --------
    >>> next_command("scores.csv", {"y": "late", "p": "score", "groups": ["sex", "age >= 60"]}, "run")
    "swapcal run scores.csv --y late --p score --groups 'sex,age >= 60' --out better.csv"
    """
    parts = ["swapcal", what, source if source != "standard input" else "-"]
    for name in ("y", "p", "groups", "categories", "linear", "property", "low", "high", "positive", "weight"):
        value = settings.get(name)
        if value in (None, [], "mean"):
            continue
        written = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        if name in ("low", "high"):
            written = f"{value:g}"
        parts += [f"--{name}", written]
    if what == "run":
        parts += ["--out", "better.csv"]
    return shlex.join(parts)
