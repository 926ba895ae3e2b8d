"""scikit-learn estimators around any model: calibrated classifiers, regressors and intervals.

`fit` is one pass over the rows in their order, on top of the model's forecasts for rows that it was not fitted on;
`predict` uses the fixed predictor that this run implies (see `online_to_batch`: what is guaranteed for a population
that does not change). `partial_fit` goes on with a stream, for which `Forecaster` states the guarantee.
"""

from swapcal.compat.sklearn.classifier import MulticalibratedClassifier
from swapcal.compat.sklearn.regressor import MulticalibratedInterval, MulticalibratedRegressor

__all__ = ["MulticalibratedClassifier", "MulticalibratedInterval", "MulticalibratedRegressor"]
