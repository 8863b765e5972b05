"""Benchmarks, run by hand: each prints a ratio against a peer or a limit. None of them is a test."""
