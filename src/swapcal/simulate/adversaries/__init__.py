"""Adversaries: streams that see everything but the draw and choose contexts, hints and labels to do harm."""

from swapcal.simulate.adversaries.arena import Arena, ball, groups, signed
from swapcal.simulate.adversaries.books import Books
from swapcal.simulate.adversaries.playing import Adversary, Odds, Opponent, Played, PlayedRound, play, rounds
from swapcal.simulate.adversaries.strategies import AntiHint, Far, Greedy, GroupTargeted, Sine, Sweep

__all__ = [
    "Adversary",
    "AntiHint",
    "Arena",
    "Books",
    "Far",
    "Greedy",
    "GroupTargeted",
    "Odds",
    "Opponent",
    "Played",
    "PlayedRound",
    "Sine",
    "Sweep",
    "ball",
    "groups",
    "play",
    "rounds",
    "signed",
]
