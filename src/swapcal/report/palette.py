"""Colors by role. Figures are drawn in the light ones; the page swaps roles for style variables, so one drawing does.

Before is orange and after is blue; biases run from purple (too low) over neutral to green (too high). Both pairs stay
apart for color-blind readers, and before and after differ in their markers too.
"""

__all__ = ["DARK", "LIGHT", "N_STEPS", "css", "step", "step_role"]

N_STEPS = 7
"""Shades of bias on either side of zero."""


def _blend(start: str, end: str, share: float) -> str:
    a, b = (tuple(int(color[k : k + 2], 16) for k in (1, 3, 5)) for color in (start, end))
    return "#" + "".join(f"{round(x + share * (y - x)):02x}" for x, y in zip(a, b, strict=True))


def _ramp(zero: str, low: str, high: str) -> dict[str, str]:
    """Shades from `zero` to `low` and to `high`; the first is already told apart from zero."""
    shares = [0.14 + 0.86 * (k / (N_STEPS - 1)) for k in range(N_STEPS)]
    steps = {f"low{k + 1}": _blend(zero, low, share) for k, share in enumerate(shares)}
    return {"zero": zero} | steps | {f"high{k + 1}": _blend(zero, high, share) for k, share in enumerate(shares)}


LIGHT = {
    "ink": "#1b1f27",
    "muted": "#586174",
    "grid": "#e3e6ec",
    "paper": "#fefefe",
    "before": "#b54a06",
    "after": "#1a5fb4",
    "reference": "#7b8494",
} | _ramp("#eff0f3", "#5b2a86", "#14692f")

DARK = {
    "ink": "#e8eaf0",
    "muted": "#a3acbd",
    "grid": "#333a47",
    "paper": "#1a1e26",
    "before": "#f7a35c",
    "after": "#7db7ff",
    "reference": "#8b95a7",
} | _ramp("#2c323d", "#c9a0f5", "#74d68f")


def step(value: float, limit: float) -> int:
    """The shade of a bias on a scale that ends at `limit`: from -N_STEPS (too low) to N_STEPS (too high).

    Examples
    --------
    >>> [step(value, 0.2) for value in (-0.5, -0.1, -0.001, 0.0, 0.02, 0.2)]
    [-7, -4, 0, 0, 1, 7]
    """
    if limit <= 0.0:
        return 0
    size = min(N_STEPS, round(abs(value) / limit * N_STEPS))
    return size if value > 0.0 else -size


def step_role(shade: int) -> str:
    """The role of a shade.

    Examples
    --------
    >>> step_role(-7), step_role(0), step_role(2)
    ('low7', 'zero', 'high2')
    """
    return "zero" if shade == 0 else f"low{-shade}" if shade < 0 else f"high{shade}"


def css(colors: dict[str, str]) -> str:
    """Declarations of style variables, one for each role."""
    return "".join(f"--{role}:{color};" for role, color in colors.items())
