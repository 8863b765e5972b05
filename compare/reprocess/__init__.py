"""Reprocessing: stored requests run again, against another candidate, as another experiment."""
