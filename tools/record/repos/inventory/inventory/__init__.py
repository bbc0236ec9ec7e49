"""Stock, prices and a reorder report of a small shop."""
