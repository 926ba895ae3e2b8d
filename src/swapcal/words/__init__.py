"""Results in words and numbers: one place for the terminal, the page and the JSON file."""
