"""Tests of the explorer's frame."""
