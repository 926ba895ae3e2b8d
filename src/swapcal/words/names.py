"""Names of groups as a page shows them: whatever they hold, they stay one piece of plain text."""

import unicodedata

__all__ = ["group_name", "readable", "shortened"]


def readable(name: str) -> str:
    r"""`name` without what no document may hold: control characters and halves of surrogate pairs.

    Examples
    --------
    >>> readable("tab\tnull\x00"), readable("  ")
    ('tab null', '(no name)')
    """
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in name)
    return " ".join(text.split()) or "(no name)"


def group_name(name: str) -> str:
    """`readable`, and the group that holds every row by the name that people use.

    Examples
    --------
    >>> group_name("all"), group_name("sex=Female")
    ('everybody', 'sex=Female')
    """
    return "everybody" if name == "all" else readable(name)


def shortened(name: str, width: int = 60) -> str:
    """`readable`, with the middle left out where it is longer than `width`: beginnings and ends tell groups apart.

    Examples
    --------
    >>> shortened("origin=JFK & carrier=American Airlines & hour=7", 24)
    'origin=JFK & ca…s & hour=7'
    """
    text = readable(name)
    end = width // 3 + 2
    return text if len(text) <= width else f"{text[: width - end + 1]}…{text[-end:]}"
