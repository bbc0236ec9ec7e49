"""Tests of `--shard`: parts that are disjoint, whole, balanced, and the same on every machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench import evaluate
from agentworldbench.config import RunConfig, make_config
from agentworldbench.errors import ConfigError
from agentworldbench.records import SampleRef
from agentworldbench.render.results import run_tables
from agentworldbench.run import load_run, score_run
from agentworldbench.selection import ANSWER_CHARS, select, shards, united_shards
from tests.helpers.official_folder import make_official_folder


def ref(domain: str, cluster: int, turn: int, chars: int) -> SampleRef:
    """A sample whose texts play no part."""
    return SampleRef(
        id=f"{domain}/{cluster}/{turn}",
        domain=domain,
        row_id=cluster,
        turn_idx=turn,
        total_turns=9,
        cluster=f"{domain}-{cluster}",
        task_key="t",
        row_hash="h",
        line=1,
        offset=0,
        length=1,
        context_chars=chars,
    )


# By domain: for each trajectory the prompt sizes of its turns.
worlds = st.dictionaries(
    st.sampled_from(["mcp", "search", "terminal", "os"]),
    st.lists(st.lists(st.integers(1, 200_000), min_size=1, max_size=5), min_size=1, max_size=12),
    min_size=1,
)


def refs_of(world: dict[str, list[list[int]]]) -> list[SampleRef]:
    return [
        ref(domain, cluster, turn, chars)
        for domain, clusters in world.items()
        for cluster, turns in enumerate(clusters)
        for turn, chars in enumerate(turns, start=1)
    ]


@given(worlds, st.integers(1, 9))
def test_parts_are_disjoint_whole_and_keep_trajectories(world: dict[str, list[list[int]]], n: int) -> None:
    refs = refs_of(world)
    parts: list[str] = []
    for part in range(1, n + 1):
        try:
            parts += [one.id for one in select(refs, RunConfig(shard=f"{part}/{n}"))]
        except ConfigError as problem:
            assert "this part is empty" in str(problem)
    assert sorted(parts) == sorted(one.id for one in refs)
    found = shards(refs, n)
    by_cluster: dict[str, set[int]] = {}
    for one in refs:
        by_cluster.setdefault(one.cluster, set()).add(found[one.id])
    assert all(len(some) == 1 for some in by_cluster.values())


@given(worlds, st.integers(2, 9))
def test_parts_are_balanced_in_every_domain(world: dict[str, list[list[int]]], n: int) -> None:
    """No part of a domain is heavier than the lightest by more than its heaviest trajectory."""
    refs = refs_of(world)
    found = shards(refs, n)
    for domain, clusters in world.items():
        loads = Counter(dict.fromkeys(range(1, n + 1), 0))
        for one in refs:
            if one.domain == domain:
                loads[found[one.id]] += one.context_chars + ANSWER_CHARS
        heaviest = max(sum(turns) + ANSWER_CHARS * len(turns) for turns in clusters)
        assert max(loads.values()) - min(loads.values()) <= heaviest


@given(worlds, st.integers(1, 9), st.randoms())
def test_neither_order_nor_other_domains_matter(
    world: dict[str, list[list[int]]], n: int, random: Any
) -> None:
    refs = refs_of(world)
    found = shards(refs, n)
    random.shuffle(refs)
    assert shards(refs, n) == found
    for domain in world:
        alone = shards([one for one in refs if one.domain == domain], n)
        assert alone == {name: part for name, part in found.items() if name.startswith(f"{domain}/")}


def test_the_same_on_every_machine() -> None:
    """Written down once: a part made elsewhere, or by another version, must fit the others. Where a domain
    begins is the first four bytes of the SHA-256 of `0/<domain>` modulo the parts, by `sha256sum`."""
    refs = refs_of({"mcp": [[1], [2], [30_000]], "terminal": [[9, 9], [40_000], [7]], "os": [[5]]})
    assert shards(refs, 2) == {
        "mcp/0/1": 2,
        "mcp/1/1": 2,
        "mcp/2/1": 1,
        "terminal/0/1": 1,
        "terminal/0/2": 1,
        "terminal/1/1": 2,
        "terminal/2/1": 1,
        "os/0/1": 1,
    }


def test_left_over_trajectories_do_not_all_go_to_one_part() -> None:
    names = ("mcp", "search", "terminal", "swe", "android", "web", "os")
    found = Counter(shards([ref(name, 0, 1, 100) for name in names], 3).values())
    assert max(found.values()) < len(names)


def test_a_part_is_taken_of_what_the_rest_selects() -> None:
    refs = refs_of({"os": [[1], [1], [1], [1], [1], [1], [1], [1]]})
    drawn = {one.id for one in select(refs, RunConfig(limit="4", seed=3))}
    parts = [select(refs, RunConfig(limit="4", seed=3, shard=f"{part}/2")) for part in (1, 2)]
    assert [len(part) for part in parts] == [2, 2]
    assert {one.id for part in parts for one in part} == drawn


FORMS = {"1/1": "1/1", "2/4": "2/4", " 3, 1 / 4 ": "1,3/4", "2,2/2": "2/2"}
REFUSED = {
    "0/2": "expected I/N",
    "2": "expected I/N",
    "3/2": "there is no part 3 of 2",
    "-1/2": "expected I/N",
    "1/0": "expected I/N",
    "1/2/3": "expected I/N",
    "1.0/2": "expected I/N",
}


@pytest.mark.parametrize("text", FORMS)
def test_forms(text: str) -> None:
    assert make_config({"shard": text}).shard == FORMS[text]


@pytest.mark.parametrize("text", REFUSED)
def test_forms_that_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"^--shard: {REFUSED[text]}"):
        make_config({"shard": text})


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (["1/3", "2/3"], "1,2/3"),
        (["1,3/3", "2/3"], None),
        (["2/3", "2/3"], "2/3"),
        (["1/2", "1/3"], None),
        (["1/3", None], None),
        ([None], None),
        (["1/1"], None),
    ],
)
def test_parts_put_together(parts: list[str | None], whole: str | None) -> None:
    assert united_shards(parts) == whole


def test_a_run_of_a_part_says_so_and_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_official_folder(tmp_path / "data", domains=("swe", "os"), trajectories=4, special=False)
    monkeypatch.chdir(tmp_path)
    runs = [
        evaluate("baseline/copy-last", data=str(data.folder), shard=f"{part}/2", display="none")
        for part in (1, 2)
    ]
    assert len({run.path for run in runs}) == 2, "each part has a directory of its own"
    for part, run in enumerate(runs, start=1):
        assert run.record.selection.shard == f"{part}/2"
        again = score_run(run.path).results
        assert again is not None
        assert again.selection.shard == f"{part}/2"
        assert again.predictions.samples == run.record.selection.samples
        assert all(f"SHARD {part} of 2: a part of a run" in table.title for table in run_tables(again)[:1])
        evaluate("baseline/copy-last", data=str(data.folder), shard=f"{part}/2", display="none")
        assert len(load_run(run.path).record.sessions) == 1
    with pytest.raises(ConfigError, match="made for a larger selection"):
        evaluate("baseline/copy-last", data=str(data.folder), shard="1/2", output=runs[1].path)
    whole = evaluate("baseline/copy-last", data=str(data.folder), output=runs[1].path)
    assert whole.record.selection.shard is None, "a part may grow into the whole"
    taken = set(shards(select(data_refs(data.folder), RunConfig(limit_trajectories=1)), 9).values())
    empty = min(set(range(1, 10)) - taken)
    with pytest.raises(ConfigError, match=f"--shard {empty}/9: this part is empty"):
        evaluate("baseline/copy-last", data=str(data.folder), limit_trajectories=1, shard=f"{empty}/9")


def test_named_samples_are_divided_too_and_the_part_resumes(tmp_path: Path) -> None:
    data = make_official_folder(tmp_path / "data", domains=("swe", "os"), trajectories=1, special=False)
    names = [one.id for one in data_refs(data.folder)]
    options: dict[str, Any] = {"data": str(data.folder), "sample_id": [names[0], names[-1]], "shard": "1/9"}
    for part in range(1, 10):
        options |= {"shard": f"{part}/9", "output": tmp_path / f"run-{part}"}
        try:
            evaluate("baseline/copy-last", **options)
        except ConfigError as problem:
            assert "this part is empty" in str(problem)
        else:
            again = evaluate("baseline/copy-last", **options)
            assert sum(again.record.selection.samples.values()) >= 1


def data_refs(folder: Path) -> tuple[SampleRef, ...]:
    """All samples of a folder, in file order."""
    from agentworldbench.plan import open_samples

    return open_samples(RunConfig(data=str(folder))).refs
