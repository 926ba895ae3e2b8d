"""Results in words and numbers: the one place through which the terminal, the page, the JSON and `Audit` speak."""
