"""From records to a verdict: runner.run, by_key.run_by_key, audit.audit and watch.watch, each of a TaskConfig."""
