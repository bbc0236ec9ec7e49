"""Metrics of structured output: tool results in JSON and the command envelopes of coding agents.

`status_match` reads any observation. The others apply where the reference holds JSON or a command envelope; a
prediction that holds neither is unparsable. Values are compared after unpacking (`json_payload.py`), so that the
same payload scores the same however it is wrapped, and texts line by line, so that one wrong number in a long file
costs one line.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from math import isclose
from typing import Any, Final

from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.facts import Facts
from agentworldbench.scoring.metrics.json_payload import Leaf, NotJson, Payload, read_payload, text_lines
from agentworldbench.scoring.metrics.text import rouge_of, tokens
from agentworldbench.scoring.metrics.tool_status import status

_REF: Final = re.compile(r" ?\[ref=[\w-]+\]")
_LONG_LINE: Final = 120
"""A longer line is compared clause by clause: a paragraph or minified JSON is no single value."""
_CLAUSE: Final = re.compile(r"(?<=[.,;:!?]) |(?<=[,;，。；！？])(?! )")
_LARGEST: Final = 10**300
"""Whole numbers beyond it are no floats."""
_MOST_ITEMS: Final = 10_000


def is_structured(facts: Facts) -> bool:
    """The reference holds JSON or is a command envelope."""
    return isinstance(facts.once(read_payload, facts.reference), Payload)


def status_match(facts: Facts, prediction: str) -> float | Unparsable:
    """1 when the call ends as in the reference: `tool_status.py` names the ends."""
    reference = facts.once(read_payload, facts.reference)
    predicted = facts.once(read_payload, prediction)
    if isinstance(reference, NotJson) or reference.command or not prediction.strip():
        pair = [
            status(found if isinstance(found, Payload) else None, text)
            for found, text in ((predicted, prediction), (reference, facts.reference))
        ]
    elif isinstance(predicted, NotJson):
        return Unparsable(predicted.reason)
    elif reference.envelope and not predicted.envelope:
        # An object alone does not say how a call ended: the call itself, echoed, is one.
        return Unparsable("not in the envelope of a result")
    else:
        pair = [status(predicted, prediction), status(reference, facts.reference)]
    return float(pair[0] == pair[1])


def schema_f1(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of the sets of (path, type), those of the envelopes included."""
    pair = _both(facts, prediction)
    if isinstance(pair, Unparsable):
        return pair
    reference, predicted = (payload.flat.schema for payload in pair)
    return 2 * len(reference & predicted) / (len(reference) + len(predicted))


def value_f1(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of the multisets of (path, value); floats may differ by the task's tolerance."""
    pair = _both(facts, prediction)
    if isinstance(pair, Unparsable):
        return pair
    reference, predicted = (_values(facts, leaves) for leaves in _comparable(*pair))
    common = (reference & predicted).total()
    common += _near(reference - predicted, predicted - reference, facts.task.structured.tolerance)
    return 2 * common / (reference.total() + predicted.total())


def _payload_tokens(facts: Facts, text: str) -> list[str]:
    """Tokens of the payload as it was printed; of the whole text where no envelope can be opened."""
    payload = facts.once(read_payload, text)
    if isinstance(payload, NotJson):
        return facts.once(tokens, text)
    if payload.raw is not None and payload.raw.strip():
        return facts.once(tokens, payload.raw)
    value = payload.value or payload.structured
    items = value if isinstance(value, list) else [value]
    return facts.once(
        tokens, "\n".join(item if isinstance(item, str) else _dumped(item, False) for item in items)
    )


def has_payload_tokens(facts: Facts) -> bool:
    """`payload_rouge_l` applies where the payload of the reference has a token."""
    return bool(_payload_tokens(facts, facts.reference))


def payload_rouge_l(facts: Facts, prediction: str) -> float:
    """ROUGE-L of the payloads: envelopes are alike in all results and would lift every score."""
    return rouge_of(_payload_tokens(facts, facts.reference), _payload_tokens(facts, prediction))


def has_ordered_lists(facts: Facts) -> bool:
    """The reference holds a list with two different items at a path that the task calls ordered."""
    reference = facts.once(read_payload, facts.reference)
    return isinstance(reference, Payload) and len(set(_items(facts, reference))) > 1


def order_match(facts: Facts, prediction: str) -> float | Unparsable:
    """F of the longest common subsequence of the items of the ordered lists."""
    from rapidfuzz.distance import LCSseq

    pair = _both(facts, prediction)
    if isinstance(pair, Unparsable):
        return pair
    reference, predicted = (_items(facts, payload) for payload in pair)
    return 2 * LCSseq.similarity(reference, predicted) / (len(reference) + len(predicted))


def _both(facts: Facts, prediction: str) -> tuple[Payload, Payload] | Unparsable:
    """Reference and prediction; applied only where the reference is structured."""
    reference = facts.once(read_payload, facts.reference)
    predicted = facts.once(read_payload, prediction)
    assert isinstance(reference, Payload), "applied only where the reference is structured"
    if isinstance(predicted, NotJson):
        return Unparsable("no command envelope" if reference.command else predicted.reason)
    return reference, predicted


def _comparable(reference: Payload, predicted: Payload) -> tuple[Counter[Leaf], Counter[Leaf]]:
    """The leaves of both. Where one payload is JSON and the other text that is none (a broken comma, say), both are
    compared as text.
    """
    if isinstance(reference.value, str) != isinstance(predicted.value, str):
        texts = reference.raw, predicted.raw
        if all(texts):
            one, other = (Counter(("", "string", line) for line in text_lines(text or "")) for text in texts)
            return one, other
    return reference.flat.leaves, predicted.flat.leaves


def _values(facts: Facts, leaves: Counter[Leaf]) -> Counter[Leaf]:
    """Leaves with volatile text masked, without element numbers, and long lines cut into clauses."""
    found: Counter[Leaf] = Counter({leaf: count for leaf, count in leaves.items() if leaf[1] != "string"})
    texts = [leaf for leaf in leaves if leaf[1] == "string"]
    masked = facts.mask("\n".join(leaf[2] for leaf in texts)).split("\n") if texts else []
    for leaf, line in zip(texts, masked, strict=True):
        line = _REF.sub("", line) if "[ref=" in line else line
        for piece in _CLAUSE.split(line) if len(line) > _LONG_LINE else [line]:
            found[leaf[0], "string", piece] += leaves[leaf]
    return found


def _near(reference: Counter[Leaf], predicted: Counter[Leaf], tolerance: float) -> int:
    """How many floats of the reference have a number of their own in the prediction within the tolerance."""
    wanted: dict[str, list[float]] = defaultdict(list)
    for (path, _, value), count in reference.items():
        if isinstance(value, float):
            wanted[path].extend([value] * count)
    given: dict[str, list[float]] = defaultdict(list)
    for (path, kind, value), count in predicted.items():
        if path in wanted and kind == "number" and value != "nan" and abs(value) < _LARGEST:
            given[path].extend([float(value)] * count)
    return sum(_pairs(sorted(wanted[path]), sorted(given[path]), tolerance) for path in given)


def _pairs(one: list[float], other: list[float], tolerance: float) -> int:
    """Greatest number of pairs of near numbers of two sorted lists."""
    found = left = right = 0
    while left < len(one) and right < len(other):
        if isclose(one[left], other[right], rel_tol=tolerance):
            found, left, right = found + 1, left + 1, right + 1
        elif one[left] < other[right]:
            left += 1
        else:
            right += 1
    return found


def _items(facts: Facts, payload: Payload) -> list[str]:
    """Items of the ordered lists as masked JSON, in order."""
    items = [
        item for path, found in payload.flat.lists if path in facts.task.structured.ordered for item in found
    ]
    return facts.mask("\n".join(_dumped(item) for item in items[:_MOST_ITEMS])).split("\n") if items else []


def _dumped(item: Any, sort_keys: bool = True) -> str:
    try:
        return json.dumps(item, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "nested too deeply"


METRICS: Final[dict[str, Metric]] = {
    "status_match": Metric(status_match),
    "schema_f1": Metric(schema_f1, is_structured),
    "value_f1": Metric(value_f1, is_structured),
    "payload_rouge_l": Metric(payload_rouge_l, has_payload_tokens),
    "order_match": Metric(order_match, has_ordered_lists),
}
