"""What several methods use: the card, and the rules, games and regressions that papers build on."""
