"""The engine: what plays a round, and what it keeps between rounds."""
