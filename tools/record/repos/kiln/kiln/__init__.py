"""Firing programmes of a pottery workshop."""
