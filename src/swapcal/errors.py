"""What goes wrong, by name. Every error says what was given, what is allowed and what to do, and leaves state alone."""


class SwapcalError(ValueError):
    """The base of every error that this package raises on purpose."""


class InvalidInput(SwapcalError):
    """A context, label, hint, setting or array that cannot be used."""


class NotElicitable(SwapcalError):
    """A property that no forecaster can calibrate, because no loss elicits it."""


class ForecastError(SwapcalError):
    """A forecast that cannot be updated."""


class UnknownForecast(ForecastError):
    """A forecast that this forecaster never made."""


class AlreadyUpdated(ForecastError):
    """A forecast that has had its outcome."""


class ExpiredForecast(ForecastError):
    """A forecast so old that the forecaster no longer remembers whether it had its outcome."""


class StateFileError(SwapcalError):
    """A state file that is truncated, foreign, or of an unknown version."""


class DataError(SwapcalError):
    """A file, frame or stream of records that cannot be read as asked; the message names it, the row and the column."""


class MissingExtra(SwapcalError):
    """A package that this part needs and that a plain install of swapcal does not bring."""


class GroupsWarning(UserWarning):
    """Values of a column that get no group of their own, because there are too many of them."""


class AtomsWarning(UserWarning):
    """Labels heap on a few values, which breaks the assumption behind the quantile's guarantee; or rows are copies."""


class OutcomesWarning(UserWarning):
    """Nothing says when outcomes were known, so that each counts as known before the next row."""


class UncompiledWarning(UserWarning):
    """The compiled kernels are missing, so that everything runs in Python."""
