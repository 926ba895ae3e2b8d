"""From records to a verdict: what an audit or a run has found, in numbers and in words."""
