"""Counts and timings from the log lines of machines."""
