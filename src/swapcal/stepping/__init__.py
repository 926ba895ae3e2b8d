"""The pure step: a state as bytes and some events in, the next state and what came out."""

from swapcal.stepping.case_events import Events, PlayedEvents
from swapcal.stepping.event_stream import EventStream
from swapcal.stepping.step import step

__all__ = ["EventStream", "Events", "PlayedEvents", "step"]
