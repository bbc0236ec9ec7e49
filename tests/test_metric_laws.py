"""Laws that hold for all metrics together, on the bundled rows and on generated ones of all seven domains.

The reference scores 1, values stay in [0, 1], what applies depends on the sample alone, copying and
omitting do not win where something changed, more damage never scores better, and rule scores fall in
the wanted order. Damages are made and scored once for all metrics (`tools/damage.py`), on all bundled
rows; which metric must see which damage stands in `cases/metrics/damage.yaml`.
"""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.models.baseline import copy_last
from agentworldbench.prompts import action_text, reference_observation
from agentworldbench.records import OFFICIAL_DOMAINS, Sample
from agentworldbench.render.names import domain_name
from agentworldbench.resources import mini_folder
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.facts import normalise
from agentworldbench.scoring.metrics.keystrokes import typed
from agentworldbench.task import METRIC_NAMES, load_tasks
from tests.helpers.official_folder import make_official_folder
from tools.damage import OPERATORS, STATUS, STRENGTHS, mean, rule_score, scenes, scored
from tools.make_ordering_table import LEAST_GAP, PAGE, faults, page

TASKS = load_tasks()
SNAPSHOT = [domain for domain in OFFICIAL_DOMAINS if TASKS[domain].observation == "snapshot"]
MINI = [domain for domain in OFFICIAL_DOMAINS if (mini_folder() / TASKS[domain].data_file).exists()]
SEEN: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (Path(__file__).parent / "cases" / "metrics" / "damage.yaml").read_text(encoding="utf-8")
)
NOWHERE = {"diff_f1"}
"""Metrics of what no bundled and no generated row shows."""
CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")


def samples_of(folder: Path, domain: str) -> list[Sample]:
    task = TASKS[domain]
    dataset = open_dataset({domain: folder / task.data_file}, {domain: task})
    return [dataset.load(ref) for ref in dataset.refs]


@cache
def mini(domain: str) -> list[Sample]:
    return [scene.sample for scene in scenes()[domain]]


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
        found = values(sample, reference(sample))
        assert len(found) >= 4, sample.id
        assert set(found.values()) == {1.0}, sample.id


@pytest.mark.parametrize("domain", OFFICIAL_DOMAINS)
def test_the_reference_scores_1_on_generated_rows(domain: str, made: dict[str, list[Sample]]) -> None:
    seen = {name for values in scored(domain, "empty", 0) for name in values}
    for sample in made[domain]:
        found = values(sample, reference(sample))
        seen |= set(found)
        assert set(found.values()) == {1.0}, sample.id
    assert seen == set(TASKS[domain].metrics) - NOWHERE


@pytest.mark.parametrize("domain", OFFICIAL_DOMAINS)
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prediction=st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("latin-1"))), data=st.data())
def test_any_text_scores_from_0_to_1_and_decides_nothing_about_what_applies(
    domain: str, made: dict[str, list[Sample]], prediction: str, data: st.DataObject
) -> None:
    sample = data.draw(st.sampled_from(made[domain]))
    real = reference(sample)
    applicable = score_observation(sample, TASKS[domain], real).applicable
    for text in (prediction, real + prediction, prediction + real[: len(real) // 2]):
        found = score_observation(sample, TASKS[domain], text)
        assert found.applicable == applicable == tuple(found.values)
        assert all(0.0 <= value <= 1.0 for value in found.values.values()), found


@pytest.mark.parametrize("domain", SNAPSHOT)
def test_copies_and_empty_pages_do_not_win_a_change(domain: str, made: dict[str, list[Sample]]) -> None:
    for name in ("change_f1", "active_change_f1"):
        changed = 0
        for sample in made[domain]:
            task = TASKS[domain]
            if name in score_observation(sample, task, "").applicable:
                changed += 1
                assert values(sample, copy_last(sample, task))[name] == 0
                assert values(sample, "")[name] == 0
        assert changed >= 8


@pytest.mark.parametrize("domain", SNAPSHOT)
def test_where_nothing_changed_the_copy_is_right(domain: str, made: dict[str, list[Sample]]) -> None:
    for sample in made[domain]:
        if len(sample.responses) < 2:
            continue
        still = sample.model_copy(update={"responses": (*sample.responses[:-1], sample.responses[-2])})
        found = values(still, copy_last(still, TASKS[domain]))
        assert not {"change_f1", "active_change_f1"} & set(found)
        assert found["noop_match"] == 1
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
    short = sorted(latin, key=lambda sample: len(reference(sample)))[:10]
    assert len(short) == 10
    for sample, other in pairwise(short):
        theirs = scorer.score(normalise(reference(sample)), normalise(reference(other)))["rougeL"].fmeasure
        assert values(sample, reference(other))["rouge_l"] == pytest.approx(theirs, abs=1e-9)


def test_every_listed_metric_stands_in_the_table() -> None:
    assert {domain: list(marks) for domain, marks in SEEN.items()} == {
        domain: list(TASKS[domain].metrics) for domain in MINI
    }


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("domain", MINI)
def test_more_damage_never_scores_better(domain: str, operator: str) -> None:
    for metric in TASKS[domain].metrics:
        means = [mean(domain, operator, strength, metric) for strength in STRENGTHS]
        if means[0] is None:
            assert metric in NOWHERE
            continue
        assert means[0] == 1.0, metric
        assert means == sorted(means, reverse=True), (metric, means)


@pytest.mark.parametrize("domain", MINI)
def test_each_metric_sees_the_damages_of_the_table(domain: str) -> None:
    for metric, operators in SEEN[domain].items():
        assert operators or metric in NOWHERE
        unseen = [name for name in operators if mean(domain, name, 1, metric) == 1.0]
        assert not unseen, f"{metric} does not see {unseen}"


@pytest.mark.parametrize("domain", MINI)
def test_rule_scores_fall_in_the_wanted_order(domain: str) -> None:
    assert not list(faults(domain))
    slip = rule_score(domain, "wrong_number", 1)
    padded, empty = (rule_score(domain, name, 1) for name in ("padding", "empty"))
    assert slip is not None and padded is not None and empty is not None
    assert 0.0 <= empty < slip < 100.0 == rule_score(domain, "empty", 0)
    assert padded <= 100 - LEAST_GAP


def bare(sample: Sample) -> str:
    """The form of an answer with nothing in it that would have to be known: a success, the keys behind the last prompt."""
    if sample.ref.domain == "mcp":
        part = {"type": "text", "text": "ok", "annotations": None, "meta": None}
        result = {"meta": None, "content": [part], "structuredContent": None, "isError": False}
        return json.dumps({"type": "text", "text": json.dumps(result), "annotations": None, "meta": None})
    task = TASKS["terminal"]
    prompt = copy_last(sample, task).rstrip().rpartition("\n")[2] or "root@host:/app#"
    keys = typed(action_text(sample.action, task)).lines
    return "\n".join([*(f"{prompt} {line}" for line in keys), prompt])


@pytest.mark.parametrize("domain", ["mcp", "terminal"])
def test_the_bare_form_of_an_answer_earns_little(domain: str) -> None:
    """Most calls succeed and most prompts come back: that much is right, and no more."""
    means = []
    for sample in mini(domain):
        found = values(sample, bare(sample))
        means.append(fmean(found[name] for name in TASKS[domain].primary if name in found))
    assert 0.2 < fmean(means) < 0.3


def test_the_table_in_the_docs_is_that_of_the_tasks() -> None:
    page = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = page.partition("## Which metric stands where")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n") if line[:2] == "| "
    ]
    assert rows[0] == ["metric", *map(domain_name, OFFICIAL_DOMAINS)]
    shown = {name.strip("`"): marks for name, *marks in rows[1:]}
    assert list(shown) == list(METRIC_NAMES)
    for index, domain in enumerate(OFFICIAL_DOMAINS):
        marks = {name: cells[index] for name, cells in shown.items()}
        assert {name for name, mark in marks.items() if mark} == set(TASKS[domain].metrics), domain
        assert {name for name, mark in marks.items() if mark == "**P**"} == set(TASKS[domain].primary), domain


def test_statuses_are_exchanged_in_some_rows() -> None:
    changed = {
        domain: sum(OPERATORS["wrong_status"](scene, 1) != scene.text for scene in found)
        for domain, found in scenes().items()
    }
    assert {domain for domain, count in changed.items() if count} == set(STATUS)
    assert changed["mcp"] == len(scenes()["mcp"])


def test_the_page_of_damages_is_that_of_today() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "renew it: python -m tools.make_ordering_table"
