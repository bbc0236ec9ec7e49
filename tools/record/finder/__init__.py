"""The search tools of the search recorder: pages, engine, extractor."""
