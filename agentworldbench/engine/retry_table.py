"""What follows a failed request, by class: the one table of the retry layer.

`attempts` bounds how many attempts of one request may end so (None: as many as --max-retries allows),
`longer` how many times the usual waits (0.5, 1, 2 … 60 s) are waited, `load` what the endpoint's
limiter makes of it, `why` the reason. A fatal class stops the whole run, in the middle too; finished records stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from agentworldbench.records import FailureKind as Kind


@dataclass(frozen=True)
class Rule:
    """One row; `load`: "shrink" the connections at once, stay "steady" for a while, or neither."""

    attempts: int | None
    longer: int
    load: Literal["shrink", "steady", ""]
    fatal: bool
    why: str


def _row(attempts: int | None, longer: int, load: Literal["shrink", "steady", ""], why: str) -> Rule:
    return Rule(attempts, longer, load, False, why)


def _final(why: str) -> Rule:
    return Rule(1, 1, "", False, why)


def _stops(why: str) -> Rule:
    return Rule(1, 1, "", True, why)


RULES: Final[Mapping[Kind, Rule]] = {
    # The server could not, or not now.
    Kind.RATE_LIMIT: _row(None, 1, "shrink", "too much from us; nothing was made, nothing is paid"),
    Kind.OVERLOADED: _row(None, 4, "shrink", "too much for the server; it takes longer to recover"),
    Kind.PROVIDER_ERROR: _row(None, 1, "steady", "a fault that often passes, and says nothing about load"),
    Kind.NETWORK: _row(None, 1, "steady", "the connection broke; the answer may have been paid"),
    Kind.TIMEOUT: _row(2, 1, "steady", "each may have been paid in full, and took the whole --timeout"),
    Kind.UNREACHABLE: Rule(None, 1, "steady", True, "fatal, but an endpoint that was reached may come back"),
    Kind.MALFORMED_RESPONSE: _row(3, 1, "", "mostly a gateway's page in between; may have been paid"),
    Kind.EMPTY: _row(2, 1, "", "where the text was lost on the way; each was paid"),
    # The request as it stands, or the answer itself.
    Kind.CONTENT_FILTER: _final("the same text is filtered again"),
    Kind.CONTEXT_OVERFLOW: _final("budget.py asks for less; as it stands it never fits"),
    Kind.BAD_REQUEST: _final("adapt.py mends parameters; five before a model's first answer stop the run"),
    Kind.REFUSED: _final("an answer"),
    Kind.TRUNCATED: _final("an answer, cut where it was asked to be"),
    Kind.TOOL_CALL: _final("an answer"),
    Kind.JUDGE_UNPARSED: _final("an answer; steps.py asks the judge again, --judge-attempts times in all"),
    Kind.JUDGE_AMBIGUOUS: _final("as judge_unparsed"),
    Kind.NOT_IN_REPLAY: _final("a file does not change"),
    Kind.UNKNOWN: _final("another program's record"),
    Kind.NOT_RUN: _final("never sent"),
    # Nothing that is sent can succeed.
    Kind.AUTHENTICATION: _stops("the key is wrong for every request (403 after an answer: bad_request)"),
    Kind.QUOTA: _stops("the account is empty"),
    Kind.MODEL_MISSING: _stops(
        "the name is wrong for every request (a page without its name: provider_error)"
    ),
}
