"""Properties that people ask for and no loss elicits: each says why, and what to use instead.

An elicitable property has convex level sets: if two distributions share its value, so does every mixture of them
(Osband 1985; Steinwart, Pasin, Williamson and Zhang, Elicitation and identification of properties, COLT 2014).
"""

from typing import ClassVar

from swapcal.errors import NotElicitable


class _Refused:
    reason: ClassVar[str]

    def __init__(self, *args: object, **options: object) -> None:
        raise NotElicitable(self.reason)


class Variance(_Refused):
    """Refused: mixing two distributions of equal variance and different mean gives a larger variance.

    Parameters
    ----------
    *args, **options
        Whatever is given is refused.

    Examples
    --------
    >>> Variance()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    swapcal.errors.NotElicitable: the variance is not elicitable: ...
    """

    reason = (
        "the variance is not elicitable: its level sets are not convex, as two distributions of the same variance "
        "and different means mix to a larger one. It is elicitable given the mean: sc.MeanVariance(groups) forecasts "
        "both."
    )


class CVaR(_Refused):
    """Refused: the mean beyond a quantile, also called expected shortfall, is elicitable only jointly with it.

    Parameters
    ----------
    *args, **options
        Whatever is given is refused.

    Examples
    --------
    >>> CVaR()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    swapcal.errors.NotElicitable: CVaR (expected shortfall) is not elicitable by itself: ...
    """

    reason = (
        "CVaR (expected shortfall) is not elicitable by itself: its level sets are not convex. It is elicitable given "
        "the quantile: sc.TailMean(0.9, groups) forecasts both."
    )


class Mode(_Refused):
    """Refused: no function of a forecast and a label has mean zero exactly at the mode of a continuous distribution.

    Parameters
    ----------
    *args, **options
        Whatever is given is refused.

    Examples
    --------
    >>> Mode()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    swapcal.errors.NotElicitable: the mode of real labels has no identification function, ...
    """

    reason = (
        "the mode of real labels has no identification function, so no forecaster can be calibrated for it. For "
        "labels from a few classes forecast Probability() of each class and take the largest; for a typical value "
        "use Median()."
    )
