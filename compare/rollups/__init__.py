"""Rollups: counts, sums and quantile states by hour, and counts by minute, rebuilt from the raw tables."""
