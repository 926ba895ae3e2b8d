"""Forecasts over the network: nothing lost, nothing learned twice. `swapcal serve` starts it; see docs/service.md.

A request goes through these files, in this order: `app` (token), `routes` (which handler), `access` (who may),
`schemas` (what was said), `handlers`, `writer` (the queue and the thread that owns all state), `idempotency` (what
becomes of each case), `stream` (the forecaster, its evaluation and its monitors), `store` (what is kept), `sqlite` or
`postgres` (the tables). Everything else looks on.
"""
