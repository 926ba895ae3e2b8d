"""river models around any river model, whose prediction is the hint and which keeps learning; and metrics.

`predict_one` is pure, as river asks, and gives the mean of the two values that a forecast would be drawn from;
`learn_one` plays the round. What that keeps is in docs/deterministic.md: calibration for every group, smooth in the
forecast, against everybody.
"""

from swapcal.compat.river.river_classifier import MulticalibratedClassifier
from swapcal.compat.river.river_interval import MulticalibratedInterval
from swapcal.compat.river.river_metrics import ExpectileLoss, GroupCoverage, PinballLoss, SwapError
from swapcal.compat.river.river_regressor import MulticalibratedRegressor

__all__ = [
    "ExpectileLoss",
    "GroupCoverage",
    "MulticalibratedClassifier",
    "MulticalibratedInterval",
    "MulticalibratedRegressor",
    "PinballLoss",
    "SwapError",
]
