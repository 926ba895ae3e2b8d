"""The service, as a real process with a real store."""
