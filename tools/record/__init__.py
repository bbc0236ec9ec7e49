"""Recorders of the bundled data set `mini`: scripted agents act, real programs answer.

In: agent actions as YAML files under `trajectories/<domain>/`, small repositories of our own
under `repos/`. Out: `<domain>_test.jsonl` and `provenance.json` in `agentworldbench/data/mini`.
One module per domain (`terminal`, `swe`), each with its own command; `common` writes the rows.
"""
