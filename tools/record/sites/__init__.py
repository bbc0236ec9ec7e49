"""The web sites of the web recorder: rules in Python, pages and records as data beside them."""
