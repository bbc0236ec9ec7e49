"""Metrics of search: lists of results by their addresses, titles and snippets, pages by the facts they state.

All of them count what is too much as well as what is missing. Text is masked before it is read, where
the task names volatile classes.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from math import fsum
from typing import Final

from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1
from agentworldbench.scoring.metrics.page_facts import page_facts
from agentworldbench.scoring.metrics.search_reader import Entry, Found, read
from agentworldbench.scoring.metrics.text import rouge_of, tokens

_NO_LIST: Final = Unparsable("no list of results")


def _read(facts: Facts, text: str) -> Found:
    return facts.once(read, facts.mask(text))


def _reference(facts: Facts) -> Found:
    return _read(facts, facts.reference)


def has_results(facts: Facts) -> bool:
    """The reference is a list of results."""
    return bool(_reference(facts).entries)


def has_snippets(facts: Facts) -> bool:
    """One of its results has a snippet."""
    return any(entry.snippet for entry in _reference(facts).entries)


def answers_a_search(facts: Facts) -> bool:
    """The reference is a list of results, or says that there are none."""
    return has_results(facts) or _reference(facts).none


def has_facts(facts: Facts) -> bool:
    """The reference states a fact."""
    return bool(facts.once(page_facts, _reference(facts).text))


def url_f1(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of the sets of pages found."""
    entries = _read(facts, prediction).entries
    if not entries:
        return _NO_LIST
    return multiset_f1(_pages(entries), _pages(_reference(facts).entries))


def _pages(entries: Iterable[Entry]) -> Counter[str]:
    return Counter({_page(entry) for entry in entries})


def _page(entry: Entry) -> str:
    return entry.address.url


def host_f1(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of the multisets of hosts, one for each result."""
    entries = _read(facts, prediction).entries
    if not entries:
        return _NO_LIST
    hosts = (Counter(entry.address.host for entry in some) for some in (entries, _reference(facts).entries))
    return multiset_f1(*hosts)


def title_f1(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of the multisets of titles, without regard to case and blanks."""
    entries = _read(facts, prediction).entries
    if not entries:
        return _NO_LIST
    titles = (Counter(_title(entry) for entry in some) for some in (entries, _reference(facts).entries))
    return multiset_f1(*titles)


def _title(entry: Entry) -> str:
    return " ".join(entry.title.split()).lower()


def snippet_rouge_l(facts: Facts, prediction: str) -> float | Unparsable:
    """2 x the sum of ROUGE-L over matched snippets / snippets of both lists.

    The nth snippet of a page is matched with the nth of the same page; what is left then, by title.
    """
    entries = _read(facts, prediction).entries
    if not entries:
        return _NO_LIST
    theirs = [entry for entry in _reference(facts).entries if entry.snippet]
    ours = [entry for entry in entries if entry.snippet]
    pairs = [*_paired(theirs, ours, _page), *_paired(theirs, ours, _title)]
    common = fsum(_alike(one.snippet, other.snippet) for one, other in pairs)
    return 2 * common / (2 * len(pairs) + len(theirs) + len(ours))


def _paired(theirs: list[Entry], ours: list[Entry], key: Callable[[Entry], str]) -> list[tuple[Entry, Entry]]:
    """Takes entries of equal keys from both lists, in their order."""
    waiting: defaultdict[str, deque[Entry]] = defaultdict(deque)
    for entry in ours:
        waiting[key(entry)].append(entry)
    pairs, left = [], []
    for entry in theirs:
        if same := waiting.get(key(entry)):
            pairs.append((entry, same.popleft()))
        else:
            left.append(entry)
    theirs[:] = left
    ours[:] = [entry for some in waiting.values() for entry in some]
    return pairs


def _alike(reference: str, snippet: str) -> float:
    """ROUGE-L; a text without tokens is like itself alone."""
    return 1.0 if reference == snippet else rouge_of(tokens(reference), tokens(snippet))


def fact_f1(facts: Facts, prediction: str) -> float:
    """F1 of the multisets of facts; those of a list of results are in its snippets and dates."""
    found = facts.once(page_facts, _read(facts, prediction).text)
    return multiset_f1(found, facts.once(page_facts, _reference(facts).text))


def count_match(facts: Facts, prediction: str) -> float | Unparsable:
    """1 when there are as many results; where there are none, the prediction must say so."""
    found = _read(facts, prediction)
    if not found.entries and not found.none:
        return _NO_LIST
    return float(len(found.entries) == len(_reference(facts).entries))


METRICS: Final[dict[str, Metric]] = {
    "url_f1": Metric(url_f1, has_results),
    "host_f1": Metric(host_f1, has_results),
    "title_f1": Metric(title_f1, has_results),
    "snippet_rouge_l": Metric(snippet_rouge_l, has_snippets),
    "fact_f1": Metric(fact_f1, has_facts),
    "count_match": Metric(count_match, answers_a_search),
}
