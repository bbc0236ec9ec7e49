"""A run beside one entry of a leaderboard, of whose samples nothing is known.

In: a run directory, and an entry by its slug, its file or its model's name. Out: an `AgainstEntry`: by domain and
overall the run's score with its own `population` interval, the entry's number, and between which ends the interval
of their difference lies (`stats/against.py` says under which assumption). Refused where data, protocol or judge
differ; `force` compares all the same and says so. Not even `force` puts the bundled data set beside published
scores, or our rule metrics beside the paper's rule checks: they share no more than a name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from agentworldbench.compare.sides import Compared, compared, open_results
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.leaderboard.entries import Entry, in_order, load_entries
from agentworldbench.protocol import PROTOCOLS, Policy
from agentworldbench.records import Record
from agentworldbench.render.cells import cell_html
from agentworldbench.render.names import domain_name, partial_domains
from agentworldbench.resources import mini_folder
from agentworldbench.stats.against import Against, against
from agentworldbench.stats.results import JudgeResults, Results
from agentworldbench.texts import digest
from agentworldbench.yamlfile import did_you_mean

SAME_PROTOCOL: Final = {"paper": "official"}
"""What a publication's protocol is called here."""


class AgainstEntry(Record):
    """A run's scores by one judge minus those of an entry, in points (0-100). `unlike` says what differs beside the
    models (empty unless forced). `overall` is not available unless the run has every domain of the entry."""

    schema_version: Literal[1] = 1
    kind: Literal["entry"] = "entry"
    run: Compared
    judge: str
    policy: Policy
    entry: Entry
    unlike: tuple[str, ...]
    coverage: dict[str, float]
    domains: dict[str, Against]
    overall: Against
    notes: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Below a notebook's cell: the tables of `awb compare`."""
        from agentworldbench.compare.tables import entry_tables

        return cell_html(entry_tables(self))


def find_entry(word: str) -> Entry | None:
    """The entry that a word names: the slug of a bundled one, a JSON file, or a model that one entry of judge scores
    has; None where it names none. Raises DataError for a file that is no entry, ConfigError for a name of several."""
    path = Path(word)
    if path.suffix == ".json" and path.is_file():
        return _read(path)
    entries = load_entries()
    by_slug = {entry.slug: entry for entry in entries}
    if word in by_slug:
        return by_slug[word]
    named = [entry for entry in entries if entry.model.casefold() == word.casefold()]
    judged = [entry for entry in named if entry.group.score == "judge"] or named
    if len(judged) > 1:
        raise ConfigError(f"{word}: several entries have this model: {', '.join(one.slug for one in judged)}")
    return judged[0] if judged else None


def entry_hint(word: str) -> str:
    """Which entry may have been meant by a word that names neither a run nor an entry."""
    return did_you_mean(word, [entry.slug for entry in load_entries()])


def _read(path: Path) -> Entry:
    try:
        return Entry.model_validate_json(path.read_bytes())
    except (ValidationError, OSError) as problem:
        why = problem.errors()[0]["msg"] if isinstance(problem, ValidationError) else str(problem)
        raise DataError(
            f"{path}: not a leaderboard entry: {why}; runs are named by their directories, `awb leaderboard show` lists those there are"
        ) from problem


def against_entry(path: Path, entry: Entry, judge: str | None = None, force: bool = False) -> AgainstEntry:
    """Compare a run with an entry, by the judge that both have. Raises ConfigError where they are unlike and `force`
    is not set, and where nothing could make them alike."""
    _, results = open_results(path)
    _refuse(results, entry)
    mine = _judge(results, entry, judge)
    unlike = tuple(_unlike(results, mine, entry))
    if unlike and not force:
        raise ConfigError(
            f"{path} and {entry.slug} are not alike: {'; '.join(unlike)}. Their scores do not compare; --force compares "
            "them all the same and says so"
        )
    policy = PROTOCOLS[mine.judge.protocol].policy
    macro = mine.macro_floor if policy == "floor" else mine.macro_exclude
    domains = {
        domain: against(
            getattr(block, policy)["total"],
            getattr(block.intervals, policy),
            entry.scores.get(domain),
            entry.intervals.get(domain),
        )
        for domain, block in mine.domains.items()
    }
    whole = set(entry.scores) == set(mine.domains)
    return AgainstEntry(
        run=compared(path, results),
        judge=results.judge_names[mine.judge.digest],
        policy=policy,
        entry=entry,
        unlike=unlike,
        coverage={domain: block.coverage for domain, block in mine.domains.items()},
        domains=domains,
        overall=against(
            macro["total"] if whole else None,
            getattr(mine.macro_intervals, policy) if whole else None,
            entry.overall,
            entry.overall_interval,
        ),
        notes=tuple(_notes(results, mine, entry)),
    )


def _refuse(results: Results, entry: Entry) -> None:
    """What --force cannot make comparable."""
    bundled = {hashlib.sha256(one.read_bytes()).hexdigest() for one in mini_folder().glob("*.jsonl")}
    if bundled & set(results.predict.data.files.values()):
        raise ConfigError(
            "the bundled data set mini is not the benchmark: other rows, other environments, one domain simulated. "
            "Nothing of it stands beside a leaderboard's numbers, and --force does not change that; run --data official"
        )
    if entry.group.score == "rules":
        raise ConfigError(
            f"{entry.slug} holds rule scores; those of a publication are checks of its own on cases that were not "
            "released, which no rule metric here measures. --force does not change that; compare with an entry of judge "
            "scores, or two runs with each other"
        )
    if not results.judges:
        raise ConfigError(
            "the run has no judge, and the entry's scores are a judge's; `awb judge RUN` asks one"
        )


def _judge(results: Results, entry: Entry, wanted: str | None) -> JudgeResults:
    """The run's judge to compare by: the one named, the one that is the entry's, or the only one."""
    names = results.judge_names
    some = [
        one
        for one in results.judges
        if wanted in (None, one.judge.model, one.judge.digest, names[one.judge.digest])
    ]
    same = [one for one in some if not any(_unlike_judge(one, entry))] or some
    if len(same) == 1:
        return same[0]
    if not some:
        raise ConfigError(f"--judge {wanted}: no judge of the run")
    raise ConfigError(f"the run has {len(same)} judges that may be meant; name one with --judge")


def _unlike(results: Results, judge: JudgeResults, entry: Entry) -> Iterator[str]:
    """What differs beside the models, in words."""
    mine, other = results.predict.data, entry.group
    if mine.name != other.data:
        yield f"the data ({mine.name} and {other.data})"
    part = [", ".join(map(domain_name, some)) for some in (in_order(mine.files), other.about)]
    if other.data_sha256 is not None and part[0] != part[1]:
        yield f"the domains ({part[0]} and {part[1]})"
    for what, one, two in (
        ("revision of the data", mine.revision, other.data_revision),
        ("files of the data", digest(mine.files), other.data_sha256),
    ):
        if two is not None and one != two:
            yield f"the {what} ({one} and {two})"
    yield from _unlike_judge(judge, entry)
    if results.predict.context_policy != "error" or results.predictions.shortened:
        yield "the context policy (histories were shortened)"
    if results.selection.sample_id or "-" in (results.selection.limit or ""):
        yield f"the samples ({results.subset}: chosen, not drawn)"


def _unlike_judge(judge: JudgeResults, entry: Entry) -> Iterator[str]:
    record, group = judge.judge, entry.group
    protocol = SAME_PROTOCOL.get(group.protocol, group.protocol)
    if record.protocol != protocol:
        yield f"the protocols ({record.protocol} and {group.protocol})"
    if group.judge_digest is not None:
        if record.digest != group.judge_digest:
            yield f"the judges ({record.model}, {record.digest} and {group.judge}, {group.judge_digest})"
        return
    if record.model.rpartition("/")[2] != group.judge and judge.served != (group.judge,):
        yield f"the judges ({record.model} and {group.judge})"
    if "diagnostics" in record.prompts:
        yield "the judge's prompts (with GUI diagnostics)"
    known = PROTOCOLS[record.protocol]
    asked = {name: record.sampling.get(name) for name in ("temperature", "max_tokens")}
    if asked != {"temperature": known.judge_temperature, "max_tokens": known.judge_max_tokens}:
        yield f"the judge's settings ({', '.join(f'{name} {value}' for name, value in asked.items())})"


def _notes(results: Results, judge: JudgeResults, entry: Entry) -> Iterator[str]:
    if results.subset:
        yield f"The run is {results.subset}; its interval is for another draw of trajectories and holds for the whole"
    if not results.complete:
        yield "The run is PARTIAL: not all of its samples have been asked"
    low = [domain_name(name) for name, one in judge.domains.items() if one.coverage < 1]
    if low:
        yield f"Coverage below 100 % in {', '.join(low)}: what failed is left out or counts 0, as the policy says"
    if entry.coverage is None:
        yield "The entry's coverage is not published"
    if part := partial_domains(entry.group.about):
        yield f"The entry is about {part}"
    missing = _missing(judge.domains, entry.scores)
    if missing:
        yield f"No overall difference: the run has no {', '.join(missing)}"
    if entry.note:
        yield f"{entry.model}: {entry.note}"
    if entry.source:
        yield f"Source: {entry.source.title}, {entry.source.location} ({entry.source.identifier})"


def _missing(mine: Collection[str], theirs: Iterable[str]) -> list[str]:
    return [domain_name(domain) for domain in theirs if domain not in mine]
