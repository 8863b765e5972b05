"""The ship rule: may this candidate ship, on what evidence, and how much more is needed."""
