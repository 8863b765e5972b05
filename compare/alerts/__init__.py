"""Alerts on the stored pairs: detectors with a promised rate of false alarms, and their webhook."""
