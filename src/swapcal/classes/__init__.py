"""More than two outcomes: probabilities of classes, the confidence in the likeliest, and sets of classes."""

from swapcal.classes.probabilities import Classes, ClassesForecast
from swapcal.classes.sets import ClassSet, ClassSetForecast
from swapcal.classes.simplex import projected, shared_out

__all__ = ["ClassSet", "ClassSetForecast", "Classes", "ClassesForecast", "projected", "shared_out"]
