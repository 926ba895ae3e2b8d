"""scikit-learn estimators around any model: calibrated classifiers, regressors and intervals.

`fit` is one pass over the rows in their order, on top of the model's forecasts for rows that it was not fitted on;
outcomes are told late, so that corrections are judged as they will be used. `predict` uses the last state.
"""

from swapcal.compat.sklearn.classifier import MulticalibratedClassifier
from swapcal.compat.sklearn.regressor import MulticalibratedInterval, MulticalibratedRegressor

__all__ = ["MulticalibratedClassifier", "MulticalibratedInterval", "MulticalibratedRegressor"]
