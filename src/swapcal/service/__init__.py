"""Forecasts over the network: nothing lost, nothing learned twice. `swapcal serve` starts it; see docs/service.md.

A request goes through these files, in this order: `app` (routes), `access` (who may), `schemas` (what was said),
`writer` (the queue and the thread that owns all state), `play` (what becomes of each case), `stream` (the forecaster
and its audits), `store` (the protocol), `sqlite` or `postgres` (the tables). Everything else looks on.
"""
