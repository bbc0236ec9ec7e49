"""Pure functions from records to numbers: aggregation now, uncertainty and comparison beside it."""
