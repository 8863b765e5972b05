"""Detectors: one module a family, each a pure function from a Subject to findings.

`compare.detect.DETECTORS` lists them; nothing registers itself on import.
"""
