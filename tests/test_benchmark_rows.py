"""The rows that the benchmarks generate are what they are said to be: their sizes, and what depends on what."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.prompts import predict_messages
from agentworldbench.sources import resolve_source
from benchmarks._rows import BYTES, full_size, prompts_of
from benchmarks.prefix_rows import SHAPES


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
