"""Bundles: what of a run becomes public, read and written; and the places that it is handed to."""
