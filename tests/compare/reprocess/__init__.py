"""Tests of `compare.reprocess`."""
