"""Benchmarks (`make bench`, or one: `python -m bench.NAME`), and their helpers. None of them is a test."""
