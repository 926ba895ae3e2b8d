"""What the numbers of a result are called: one name for each, wherever it is shown."""

__all__ = ["QUANTITIES", "capitalized", "guarantee_sentence", "rate_name"]

QUANTITIES = {
    "swap_error": "swap error",
    "group_error": "worst group's error",
    "overall_error": "everybody's error",
    "chance_mean": "swap error by chance alone",
    "guarantee": "guaranteed at most",
}
"""Names by the fields of `ColumnSummary` and `Result`."""


def guarantee_sentence(delta: float) -> str:
    """What the guarantee of a run rests on, for somebody who can check it.

    Examples
    --------
    >>> guarantee_sentence(0.05)[:61]
    'holds with probability 95 % if nobody who influences outcomes'
    """
    return (
        f"holds with probability {100.0 * (1.0 - delta):g} % if nobody who influences outcomes knew the seed or saw a "
        "forecast before its outcome was settled, and if no outcome is missing because of the forecast"
    )


def rate_name(r: float) -> str:
    """The rate of the guarantee for errors of power r.

    Examples
    --------
    >>> rate_name(2.0), rate_name(1.0)
    ('T^(1/3)', 'T^(1/2)')
    """
    return f"T^(1/{r + 1.0:g})"


def capitalized(name: str) -> str:
    """`name` as the title of a card or the first word of a sentence."""
    return name[:1].upper() + name[1:]
