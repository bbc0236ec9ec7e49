"""Other programs' formats: one module reads or writes what another ecosystem understands."""
