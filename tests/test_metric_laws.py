"""Laws that hold for all metrics together, on the bundled rows and on generated ones of all seven domains.

The reference scores 1, values stay in [0, 1], what applies depends on the sample alone, copying and
omitting do not win where something changed, and more damage never scores better.
"""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.models.baseline import copy_last
from agentworldbench.prompts import reference_observation
from agentworldbench.records import OFFICIAL_DOMAINS, Sample
from agentworldbench.resources import mini_folder
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.facts import normalise
from agentworldbench.task import load_tasks
from tests.helpers.official_folder import make_official_folder
from tools.damage import OPERATORS
from tools.make_ordering_table import PAGE, page

TASKS = load_tasks()
SNAPSHOT = [domain for domain in OFFICIAL_DOMAINS if TASKS[domain].observation == "snapshot"]
MINI = [domain for domain in OFFICIAL_DOMAINS if (mini_folder() / TASKS[domain].data_file).exists()]
STRENGTHS = (0, 1, 2, 4)
CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")


def samples_of(folder: Path, domain: str) -> list[Sample]:
    task = TASKS[domain]
    dataset = open_dataset({domain: folder / task.data_file}, {domain: task})
    return [dataset.load(ref) for ref in dataset.refs]


@cache
def mini(domain: str) -> list[Sample]:
    return samples_of(mini_folder(), domain)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Sample]]:
    """Generated samples by domain."""
    folder = tmp_path_factory.mktemp("official")
    make_official_folder(folder, seed=5, trajectories=2, turns=5, observation_chars=300)
    return {domain: samples_of(folder, domain) for domain in OFFICIAL_DOMAINS}


def values(sample: Sample, prediction: str) -> dict[str, float]:
    return score_observation(sample, TASKS[sample.ref.domain], prediction).values


def reference(sample: Sample) -> str:
    return reference_observation(sample, TASKS[sample.ref.domain])


def test_there_is_bundled_data() -> None:
    assert {"terminal", "swe"} <= set(MINI)
    assert SNAPSHOT == ["android", "web", "os"]


@pytest.mark.parametrize("domain", MINI)
def test_the_reference_scores_1_on_bundled_rows(domain: str) -> None:
    for sample in mini(domain):
        scored = values(sample, reference(sample))
        assert len(scored) >= 4, sample.id
        assert set(scored.values()) == {1.0}, sample.id


@pytest.mark.parametrize("domain", OFFICIAL_DOMAINS)
def test_the_reference_scores_1_on_generated_rows(domain: str, made: dict[str, list[Sample]]) -> None:
    seen: set[str] = set()
    for sample in made[domain]:
        scored = values(sample, reference(sample))
        seen |= set(scored)
        assert set(scored.values()) == {1.0}, sample.id
    assert seen >= set(TASKS[domain].metrics) - {"noop_match"}


@pytest.mark.parametrize("domain", OFFICIAL_DOMAINS)
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prediction=st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("latin-1"))), data=st.data())
def test_any_text_scores_from_0_to_1_and_decides_nothing_about_what_applies(
    domain: str, made: dict[str, list[Sample]], prediction: str, data: st.DataObject
) -> None:
    sample = data.draw(st.sampled_from(made[domain]))
    real = reference(sample)
    applicable = score_observation(sample, TASKS[domain], real).applicable
    for text in (prediction, real + prediction, prediction + real[: len(real) // 2]):
        scored = score_observation(sample, TASKS[domain], text)
        assert scored.applicable == applicable == tuple(scored.values)
        assert all(0.0 <= value <= 1.0 for value in scored.values.values()), scored


@pytest.mark.parametrize("domain", SNAPSHOT)
def test_copies_and_empty_pages_do_not_win_a_change(domain: str, made: dict[str, list[Sample]]) -> None:
    changed = 0
    for sample in made[domain]:
        task = TASKS[domain]
        if "change_f1" in score_observation(sample, task, "").applicable:
            changed += 1
            assert values(sample, copy_last(sample, task))["change_f1"] == 0
            assert values(sample, "")["change_f1"] == 0
    assert changed >= 8


@pytest.mark.parametrize("domain", SNAPSHOT)
def test_where_nothing_changed_the_copy_is_right(domain: str, made: dict[str, list[Sample]]) -> None:
    for sample in made[domain]:
        if len(sample.responses) < 2:
            continue
        still = sample.model_copy(update={"responses": (*sample.responses[:-1], sample.responses[-2])})
        scored = values(still, copy_last(still, TASKS[domain]))
        assert "change_f1" not in scored
        assert scored["noop_match"] == 1
        assert values(still, "")["noop_match"] == 0
        assert values(still, copy_last(still, TASKS[domain]) + "\none more line")["noop_match"] == 0


@pytest.mark.parametrize("domain", MINI)
def test_rouge_l_equals_the_package_on_bundled_rows(domain: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    latin = [
        sample
        for sample in mini(domain)
        if "rouge_l" in values(sample, "") and not CJK.search(reference(sample))
    ]
    short = sorted(latin, key=lambda sample: len(reference(sample)))[:15]
    assert len(short) == 15
    for sample, other in pairwise(short):
        theirs = scorer.score(normalise(reference(sample)), normalise(reference(other)))["rougeL"].fmeasure
        assert values(sample, reference(other))["rouge_l"] == pytest.approx(theirs, abs=1e-9)


def mean_under(operator: str, strength: int, domain: str, metric: str) -> float:
    """Mean of a metric over the bundled rows, each damaged at the same places, more of them when stronger."""
    samples = mini(domain)
    found = []
    for index, sample in enumerate(samples):
        others = (reference(samples[(index + step) % len(samples)]) for step in range(1, len(samples)))
        text = OPERATORS[operator](reference(sample), strength, random.Random(sample.id), others)
        found.append(values(sample, text)[metric])
    return fmean(found)


@pytest.mark.parametrize("metric", ["line_f1", "rouge_l"])
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("domain", MINI)
def test_more_damage_never_scores_better(domain: str, operator: str, metric: str) -> None:
    means = [mean_under(operator, strength, domain, metric) for strength in STRENGTHS]
    assert means[0] == 1.0
    assert means[1] < 1.0
    assert means == sorted(means, reverse=True), means


@pytest.mark.parametrize("metric", ["line_f1", "rouge_l"])
@pytest.mark.parametrize("domain", MINI)
def test_another_observation_and_none_at_all_score_below_a_slip(domain: str, metric: str) -> None:
    samples = mini(domain)
    others = [reference(sample) for sample in samples[7:] + samples[:7]]
    foreign = fmean(values(sample, other)[metric] for sample, other in zip(samples, others, strict=True))
    empty = fmean(values(sample, "")[metric] for sample in samples)
    slip = mean_under("wrong_numbers", 1, domain, metric)
    assert empty == 0.0 <= foreign < slip < 1.0
    assert mean_under("padding", 1, domain, metric) < 0.9


def test_the_page_of_damages_is_that_of_today() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "renew it: python -m tools.make_ordering_table"
