"""From a response pair to numbers, verdicts, rows and alerts. Nothing here calls a model."""
