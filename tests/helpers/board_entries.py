"""Measured entries as whole runs would give them, made from a seed: for pages and checks that need many.

`measured(number)` makes the entry of one model with both readings, dimensions, intervals, rules, costs and
provenance, consistent in itself; `board(count)` as many in three groups: two judges, and one of rule scores.
"""

from __future__ import annotations

from random import Random
from typing import Any

from agentworldbench.leaderboard.entries import Entry, Group, RuleScores
from agentworldbench.leaderboard.measured import prompts_digest, slug_of
from agentworldbench.leaderboard.provenance import Bundle, Costs, EntryJudge, Provenance, Submitter
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import DIMENSIONS, OFFICIAL_DOMAINS, Usage
from agentworldbench.run_record import DataSection, JudgeRecord, PredictSection
from agentworldbench.sources import OFFICIAL_REPOSITORY, OFFICIAL_REVISION
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import Block, Reading, Scores
from agentworldbench.texts import digest, sha256_text

SAMPLES = 310
MAKERS = ("Alder", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Rowan")
SIZES = ("2B", "8B", "14B", "32B-A3B", "70B", "235B-A22B", "Mini", "Flash", "Pro", "Max-Preview")


def model_name(number: int) -> str:
    """A name that no other number has."""
    maker, size = MAKERS[number % len(MAKERS)], SIZES[number // len(MAKERS) % len(SIZES)]
    turn = number // (len(MAKERS) * len(SIZES))
    return f"{maker}-{3 + turn}.5-{size}"


def judge_record(protocol: str, model: str) -> JudgeRecord:
    """A judge with hashes of every prompt."""
    known = PROTOCOLS[protocol]
    sampling = {"temperature": known.judge_temperature, "max_tokens": known.judge_max_tokens}
    return JudgeRecord(
        digest=sha256_text(protocol + model)[:16],
        model=model,
        identity={"backend": "litellm", "name": model},
        protocol=protocol,
        protocol_version=known.version,
        sampling=sampling,
        schema_sha256=None,
        prompts={"user": sha256_text(f"user {protocol}")},
        system_prompts={domain: sha256_text(f"{protocol} {domain}") for domain in OFFICIAL_DOMAINS},
        parse=known.parse,
        attempts=3,
        min_output=None,
        max_context=None,
    )


def predict_section(model: str) -> PredictSection:
    """What fixed the predictions of a run over the whole data."""
    return PredictSection(
        data=DataSection(
            name="official",
            repository=OFFICIAL_REPOSITORY,
            revision=OFFICIAL_REVISION,
            files={domain: sha256_text(domain) for domain in OFFICIAL_DOMAINS},
        ),
        tasks={domain: sha256_text(f"task {domain}")[:16] for domain in OFFICIAL_DOMAINS},
        extraction="builtin 1",
        model={"model": model, "backend": "litellm", "name": model},
        sampling={
            domain: {"temperature": 0.6, "top_p": 0.95, "max_tokens": 32768} for domain in OFFICIAL_DOMAINS
        },
        max_context=None,
        min_output=1024,
    )


def _interval(value: float, half: float, clusters: int = 80) -> Interval:
    return Interval(
        method="clustered",
        low=value - half,
        high=value + half,
        half=half,
        se=half / 2,
        df=clusters - 1,
        clusters=clusters,
    )


def _block(draw: Random, level: float, scored: int) -> Block:
    share = scored / SAMPLES
    exclude: Scores = {name: min(99.0, max(1.0, draw.gauss(level, 6))) for name in DIMENSIONS}
    exclude["total"] = sum(value or 0 for value in exclude.values()) / len(DIMENSIONS)
    floor: Scores = {name: (value or 0) * share for name, value in exclude.items()}
    totals = {"exclude": exclude["total"] or 0, "floor": floor["total"] or 0}
    intervals = Intervals(**{name: _interval(value, draw.uniform(1, 4)) for name, value in totals.items()})
    return Block(
        samples=SAMPLES, asked=SAMPLES, scored=scored, clusters=80, coverage=share, exclude=exclude, floor=floor,
        intervals=intervals,
        dimension_intervals={
            name: Intervals(exclude=_interval(exclude[name] or 0, draw.uniform(1, 5)), floor=_interval(floor[name] or 0, 3))
            for name in DIMENSIONS
        },
    )  # fmt: skip


def _reading(draw: Random, level: float, scored: int) -> Reading:
    blocks = {domain: _block(draw, draw.gauss(level, 9), scored) for domain in OFFICIAL_DOMAINS}
    columns = ("total", *DIMENSIONS)
    macros = {
        policy: {
            name: sum(getattr(one, policy)[name] for one in blocks.values()) / len(blocks) for name in columns
        }
        for policy in ("exclude", "floor")
    }
    whole = {policy: _interval(scores["total"], draw.uniform(0.6, 1.4)) for policy, scores in macros.items()}
    lost = SAMPLES - scored
    return Reading(
        domains=blocks,
        failures={
            domain: {"prediction": {"truncated": lost} if lost else {}, "judge": {}} for domain in blocks
        },
        micro=_block(draw, level, scored),
        macro_dimension_intervals={
            name: Intervals(**{policy: _interval(macros[policy][name], 1.2) for policy in macros})
            for name in DIMENSIONS
        },
        macro_exclude=dict(macros["exclude"]),
        macro_floor=dict(macros["floor"]),
        macro_intervals=Intervals(**whole),
    )


def _rules(draw: Random, level: float) -> RuleScores:
    scores = {domain: min(95.0, max(2.0, draw.gauss(level, 8))) for domain in OFFICIAL_DOMAINS}
    overall = sum(scores.values()) / len(scores)
    return RuleScores(
        definition=sha256_text("rules"), policy="floor", scores=scores, overall=overall,
        skill={domain: score / 130 for domain, score in scores.items()}, overall_skill=overall / 130,
        interval=_interval(overall, 1.1), skill_interval=_interval(overall / 130, 0.012),
        intervals={domain: _interval(score, 2.5) for domain, score in scores.items()},
    )  # fmt: skip


def measured(number: int, kind: str = "builtin", name: str | None = None, **changes: Any) -> Entry:
    """The entry of one model; `kind` is a judge's protocol, or `rules`. `changes` are fields of the entry."""
    draw = Random(f"{number} {kind}")
    model = name or model_name(number)
    predict, level = predict_section(f"provider/{model.lower()}"[:200]), draw.uniform(28, 62)
    rules = _rules(draw, level - 8)
    judge = None if kind == "rules" else judge_record(kind, "openai/gpt-5.2-2025-12-11")
    group = Group(
        score="judge" if judge else "rules",
        data="official",
        data_revision=predict.data.revision,
        data_sha256=digest(predict.data.files),
        protocol=judge.protocol if judge else f"rules {rules.definition[:8]}",
        prompts_sha256=prompts_digest(predict, [judge] if judge else []),
        judge=judge and judge.model,
        judge_digest=judge and judge.digest,
        context_policy="error",
    )
    known = PROTOCOLS[kind] if judge else PROTOCOLS["builtin"]
    fields: dict[str, Any] = {
        "slug": slug_of(model, group), "model": model, "status": "measured", "group": group, "stated_overall": None,
        "policy": known.policy, "rules": rules, "costs": _costs(draw, judge is not None),
        "submitter": Submitter(name=f"The {model} team", url=f"https://{number}.example.org/evaluations", contact=f"evaluation@{number}.example.org"),
        "bundle": Bundle(sha256=sha256_text(model), url=f"https://bundles.example.org/agentworldbench/{number}.awb.zip"),
        "provenance": Provenance(
            begun=f"2026-11-{1 + number % 28:02}T08:00:00Z", date=f"2026-11-{1 + number % 28:02}T12:30:00Z",
            harness="0.1.0", git_commit=sha256_text("commit")[:40], git_dirty=False, scored_by="0.1.0", predict=predict,
            samples=dict.fromkeys(OFFICIAL_DOMAINS, SAMPLES),
        ),
    }  # fmt: skip
    if judge is None:
        fields |= {
            "scores": rules.scores, "coverage": dict.fromkeys(rules.scores, 1.0), "computed_overall": rules.overall,
            "intervals": rules.intervals, "overall_interval": rules.interval,
        }  # fmt: skip
    else:
        scored = SAMPLES - (0 if number % 5 else draw.randrange(40))
        readings = {parse: _reading(draw, level, scored) for parse in ("strict", "official")}
        head = readings[known.parse]
        fields |= {
            "parse": known.parse, "readings": readings, "judges": (EntryJudge(judge=judge, served=("gpt-5.2-2025-12-11",)),),
            "scores": {domain: getattr(one, known.policy)["total"] for domain, one in head.domains.items()},
            "coverage": {domain: one.coverage for domain, one in head.domains.items()},
            "computed_overall": getattr(head, f"macro_{known.policy}")["total"],
            "intervals": {domain: getattr(one.intervals, known.policy) for domain, one in head.domains.items()},
            "overall_interval": getattr(head.macro_intervals, known.policy),
        }  # fmt: skip
    return Entry.model_validate(fields | changes)


def _costs(draw: Random, judged: bool) -> Costs:
    answers = SAMPLES * len(OFFICIAL_DOMAINS)
    usd = 10 ** draw.uniform(0, 2.3)
    usage = Usage(
        prompt_tokens=draw.randrange(10**7, 4 * 10**7), cached_tokens=10**7, completion_tokens=draw.randrange(10**6, 9 * 10**6),
        reasoning_tokens=draw.randrange(10**6),
    )  # fmt: skip
    known = bool(draw.randrange(4))
    spent = Spending(
        usage=usage,
        cost_usd=usd if known else None,
        known_usd=usd if known else 0,
        records=answers,
        unknown=0 if known else answers,
    )
    return Costs(answers=answers, predictions=spent, verdicts=spent if judged else None)


def board(count: int) -> list[Entry]:
    """As many entries, in three groups."""
    kinds = ("builtin", "builtin", "official", "rules")
    return [measured(number, kinds[number % len(kinds)]) for number in range(count)]
