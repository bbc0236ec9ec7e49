"""The rows that the benchmarks generate are what they are said to be: sizes, what depends on what, shapes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.prompts import predict_messages, reference_observation
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.sources import resolve_source
from benchmarks._observations import damaged
from benchmarks._rows import BYTES, full_size, prompts_of, scored_size
from benchmarks.prefix_rows import SHAPES

SNAPSHOT = {"android", "web", "os"}


def opened(folder: Path) -> Dataset:
    source = resolve_source(str(folder))
    return open_dataset(source.files, source.tasks)


@pytest.mark.parametrize("chars", [1_000, 30_000])
def test_prompts_have_the_size_and_wait_for_nothing(tmp_path: Path, chars: int) -> None:
    prompts_of(tmp_path / "rows", 21, chars)
    dataset = opened(tmp_path / "rows")
    assert len(dataset.refs) == 21
    for ref in dataset.refs:
        messages = predict_messages(dataset.load(ref))
        assert abs(sum(len(message.content) for message in messages) - chars) <= 1
    for name in ("cluster", "task_key"):
        assert len({getattr(ref, name) for ref in dataset.refs}) == 21


def test_a_part_of_the_full_size_has_its_part_of_the_bytes(tmp_path: Path) -> None:
    rows = full_size(tmp_path, share=0.05)
    dataset = opened(tmp_path)
    assert rows == len(dataset.refs)
    assert {domain: file.rows for domain, file in dataset.files.items()} == {
        domain: round(published * 0.05) for domain, (published, _, _) in SHAPES.items()
    }
    size = sum(path.stat().st_size for path in tmp_path.glob("*.jsonl"))
    assert size == pytest.approx(BYTES * 0.05, rel=0.1)


def test_generated_observations_are_of_the_shapes_that_metrics_read(tmp_path: Path) -> None:
    share = 0.03
    rows = scored_size(tmp_path / "rows", share)
    dataset, tasks = opened(tmp_path / "rows"), resolve_source(str(tmp_path / "rows")).tasks
    size = sum(path.stat().st_size for path in (tmp_path / "rows").glob("*.jsonl"))
    assert rows == len(dataset.refs)
    assert size == pytest.approx(BYTES * share, rel=0.25)
    applying: dict[str, set[str]] = {domain: set() for domain in tasks}
    lengths = []
    for ref in dataset.refs:
        sample, task = dataset.load(ref), tasks[ref.domain]
        reference = reference_observation(sample, task)
        lengths.append(len(reference))
        scored = score_observation(sample, task, reference)
        assert set(scored.values.values()) == {1.0} and not scored.reasons, ref.id
        applying[ref.domain] |= set(scored.applicable)
        worse = score_observation(sample, task, damaged(reference, Random(ref.id))).values
        assert all(0 <= value <= 1 for value in worse.values())
    assert {domain: set(tasks[domain].metrics) - names for domain, names in applying.items()} == {
        domain: set() if domain not in SNAPSHOT else {"noop_match"} - names
        for domain, names in applying.items()
    }
    assert min(lengths) < 100 and 10_000 < max(lengths) < 20_000
