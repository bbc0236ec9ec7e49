"""Bash on a pseudo-terminal, and what a screen shows of its output."""
