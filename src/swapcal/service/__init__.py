"""Forecasts over the network: nothing lost, nothing learned twice. `swapcal serve` starts it; see docs/service.md.

A request goes through these files, in this order: `application` (routes), `access` (who may), `schemas` (what was
said), `writer` (the queue and the thread that owns all state), `once` (what becomes of each case), `served_stream` (the
forecaster, its scores and its watch), `event_store` (the protocol), `sqlite` or `postgres` (the tables). Everything
else looks on.
"""
