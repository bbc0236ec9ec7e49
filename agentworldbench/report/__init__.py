"""A run as pages that people look at: an overview, a browser of samples, a page for each sample."""
