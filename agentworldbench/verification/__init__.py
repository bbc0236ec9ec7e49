"""Whether a bundle's numbers are what its replies say, checked without asking a model."""
