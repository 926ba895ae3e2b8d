"""What many keys cost, on this machine and on paper."""
