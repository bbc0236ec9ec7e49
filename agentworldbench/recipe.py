"""The `recipe` block of a configuration file: how a published model is run, and where each setting is from.

It changes nothing in a run. `awb run` names it, and shows its server command when no server answers.
"""

from __future__ import annotations

from agentworldbench.records import Record


class Recipe(Record):
    """`published` is the model's row in the published table, `weights` its hub repository (None: an
    API only), `server` the command that serves it, `needs` the hardware in words. `sources` says for
    each setting of the file where it comes from, `unknown` what nobody has disclosed."""

    published: str
    weights: str | None = None
    server: str | None = None
    needs: str
    sources: dict[str, str]
    unknown: str | None = None
