"""What a plan will ask and cost, before anything is sent: `awb estimate`, and the lines before a run.

In: a plan. Out: requests, prompt tokens, output and USD from low to high, by stage and domain, of what is
still due. Prompts are the real texts, judge prompts rendered as they will be (with the reference in the
place of a prediction that does not exist yet). Tokens are counted by a tokenizer that lies on this
machine, for large data on a part of each domain, or else estimated. A part of a prompt is cacheable where
an earlier turn of its trajectory has sent it in the same session. The low end takes every cacheable token
for cached and answers for short, the high end none and long. No price: unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal, get_args

from agentworldbench.engine.expected import prediction_tokens, verdict_tokens
from agentworldbench.engine.fitting import estimate_tokens, smaller
from agentworldbench.engine.order import in_order
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.units import Question, Unit
from agentworldbench.estimated import Estimate, StageEstimate
from agentworldbench.models import Model
from agentworldbench.models.local_tokens import Counter, local_counter
from agentworldbench.plan import Plan
from agentworldbench.prompts import predict_messages, reference_observation
from agentworldbench.records import Message, Prediction, Sample, SampleRef
from agentworldbench.resume import continued, epochs_asked, judges_and_panel, repeats_asked
from agentworldbench.scoring.judge import Judge
from agentworldbench.stats.costs import Amount
from agentworldbench.store import Store

COUNTED: Final = 1_000_000
"""Characters of each domain that a tokenizer counts; the rest is estimated at the rate that they show."""


Kind = Literal["first", "answer", "verdict"]
"""What a request adds: a sample's first answer with its first verdict, a further answer with that one's first verdict,
a further verdict."""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


def estimate(plan: Plan) -> Estimate:
    """What is still due of a plan. Raises ConfigError where it may not continue what its directory holds,
    DataError where a row cannot be read again."""
    stages, stored = _counted(plan)
    return _made(stages, KINDS, stored)


def estimate_by_kind(plan: Plan) -> dict[Kind, Estimate]:
    """The same in its parts, by what each request adds."""
    stages, stored = _counted(plan)
    return {kind: _made(stages, (kind,), stored) for kind in KINDS}


def _counted(plan: Plan) -> tuple[_Stages, int]:
    """All that is due, counted, and how many predictions are stored already."""
    store = Store(plan.path)
    # Where the plan begins a run, failures that another configuration has left are set aside.
    run = continued(store, plan)
    judges_and_panel(store, plan, run)  # refused before anybody is asked to pay
    patience = Patience(retry_failed=plan.config.retry_failed or run is None)
    epochs = epochs_asked(plan.config, run)
    pipeline = Pipeline(
        plan.samples.dataset,
        store,
        plan.predictor,
        plan.judges,
        patience,
        Progress(),
        epochs=epochs,
        repeats=repeats_asked(plan, run),
    )
    units, questions = pipeline.due(plan.samples.refs)
    due: dict[str, tuple[list[Unit], list[Question]]] = {}
    for unit in units:
        due.setdefault(unit.ref.id, ([], []))[0].append(unit)
    for question in questions:
        due.setdefault(question.unit.ref.id, ([], []))[1].append(question)
    stages = _Stages(plan, store)
    for turns in in_order(plan.samples.refs, plan.config.seed):
        stages.begin_trajectory()
        for ref in turns:
            if ref.id in due:
                stages.add(ref, plan.samples.dataset.load(ref) if stages.read else None, *due[ref.id])
    return stages, len(plan.samples.refs) * epochs - len(units) if plan.predictor else 0


def _made(stages: _Stages, kinds: Sequence[Kind], stored: int) -> Estimate:
    made = stages.made(kinds)
    paid = [stage for stage in made if stage.total.requests and not stage.local]
    totals = [stage.total for stage in paid]
    return Estimate(
        stages=made,
        stored_predictions=stored,
        usd_low=sum(total.usd_low or 0.0 for total in totals),
        usd_high=sum(total.usd_high or 0.0 for total in totals),
        unpriced=tuple(dict.fromkeys(stage.model for stage in paid if stage.price is None)),
    )


class _Stages:
    """The stages of a plan while its samples pass by, each trajectory in the order of work."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan = plan
        self._store = store
        self._predict = _Stage(plan.predictor.model) if plan.predictor else None
        self._judges = [(judge, _Stage(judge.model)) for judge in plan.judges]

    @property
    def read(self) -> bool:
        """Whether any of the models is sent texts."""
        return any(stage.sent for stage in self._all())

    def _all(self) -> list[_Stage]:
        first = [self._predict] if self._predict else []
        return first + [stage for _, stage in self._judges]

    def begin_trajectory(self) -> None:
        """Nothing of the trajectory has been sent yet."""
        for stage in self._all():
            stage.before = ()

    def add(
        self, ref: SampleRef, sample: Sample | None, units: list[Unit], questions: list[Question]
    ) -> None:
        """Count one sample's requests; `sample` is None where no text is sent."""
        config, domain, predictor = self._plan.config, ref.domain, self._plan.predictor
        reference = reference_observation(sample, self._plan.samples.tasks[domain]) if sample else ""
        if units and self._predict and predictor:
            most = smaller(predictor.sampling(ref, 1).max_tokens, predictor.model.limits.max_output)
            tokens = estimate_tokens((Message(role="user", content=reference),))
            output = prediction_tokens(config, tokens, most)
            messages = predict_messages(sample) if sample else ()
            for number, unit in enumerate(units):
                kind: Kind = "first" if unit.epoch == 1 else "answer"
                self._predict.add(kind, domain, messages, output, again=number > 0)
        new = {unit.epoch for unit in units}
        for judge, stage in self._judges:
            most_of_judge = smaller(judge.sampling.max_tokens, judge.model.limits.max_output)
            output = verdict_tokens(config, most_of_judge)
            mine = [one for one in questions if one.judge is judge]
            for number, question in enumerate(mine):
                epoch = question.unit.epoch
                prediction = (
                    None if epoch in new else self._store.predictions.get((question.unit.ref.id, epoch))
                )
                # The prediction of another epoch is another text.
                expected = reference if epoch == 1 else f"{epoch} {reference}"
                again = number > 0 and mine[number - 1].unit == question.unit
                messages = stage.before
                if not again:
                    messages = _judge_prompt(judge, sample, prediction, expected) if sample else ()
                kind = "verdict" if question.repeat > 1 else "first" if epoch == 1 else "answer"
                stage.add(kind, domain, messages, output, again)

    def made(self, kinds: Sequence[Kind]) -> tuple[StageEstimate, ...]:
        """The finished stages, of requests of these kinds."""
        domains = list(self._plan.samples.tasks)
        first = [self._predict.estimate("predict", domains, kinds)] if self._predict else []
        return (*first, *(stage.estimate("judge", domains, kinds) for _, stage in self._judges))


@dataclass
class _Rate:
    """How many tokens a domain has for each one estimated, as far as they have been counted."""

    characters: int = 0
    counted: int = 0
    estimated: int = 0
    all: bool = True


@dataclass
class _Stage:
    """One model's requests while they are counted. `before` is what its last request of a trajectory sent,
    and `_tokens_before` how many tokens that has."""

    model: Model
    before: tuple[Message, ...] = ()
    _tokens_before: int = 0
    _amounts: dict[tuple[str, Kind], Amount] = field(default_factory=dict)
    _rates: dict[str, _Rate] = field(default_factory=dict)
    _counter: tuple[str, Counter] | None = None

    def __post_init__(self) -> None:
        self.sent = not (self.model.local and self.model.batch is None)
        self._counter = local_counter(self.model) if self.sent else None

    def add(
        self, kind: Kind, domain: str, messages: tuple[Message, ...], output: tuple[int, int], again: bool
    ) -> None:
        """One more request; `again`: the last one had the very same prompt."""
        low, high = output if self.sent else (0, 0)
        if again:
            tokens = cached = self._tokens_before
        else:
            tokens = self._tokens(domain, messages)
            share = estimate_tokens(_common(self.before, messages)) / max(estimate_tokens(messages), 1)
            cached = min(round(tokens * share), tokens)
        self.before, self._tokens_before = messages, tokens
        price = self.model.price()
        rates = None if price is None else price.rates(tokens)
        one = Amount(
            requests=1,
            prompt_tokens=tokens,
            cacheable_tokens=cached,
            output_low=low,
            output_high=high,
            usd_low=None if rates is None else rates.usd(tokens, low, cached),
            usd_high=None if rates is None else rates.usd(tokens, high),
        )
        key = domain, kind
        self._amounts[key] = self._amounts[key] + one if key in self._amounts else one

    def _tokens(self, domain: str, messages: Sequence[Message]) -> int:
        estimated = estimate_tokens(messages) if messages else 0
        if self._counter is None or not messages:
            return estimated
        rate = self._rates.setdefault(domain, _Rate())
        if rate.characters >= COUNTED:
            rate.all = False
            return round(estimated * rate.counted / max(rate.estimated, 1))
        counted = sum(4 + self._counter[1](message.content) for message in messages)
        rate.characters += sum(len(message.content) for message in messages)
        rate.counted += counted
        rate.estimated += estimated
        return counted

    def estimate(
        self, stage: Literal["predict", "judge"], order: Sequence[str], kinds: Sequence[Kind]
    ) -> StageEstimate:
        """The finished stage, domains in this order."""
        domains: dict[str, Amount] = {}
        for domain, kind in product(order, kinds):
            if (one := self._amounts.get((domain, kind))) is not None:
                domains[domain] = domains[domain] + one if domain in domains else one
        return StageEstimate(
            stage=stage,
            model=self.model.name,
            local=self.model.local,
            price=self.model.price(),
            tokens_from=self._how(),
            domains=domains,
        )

    def _how(self) -> str | None:
        if not self.sent:
            return None
        if self._counter is None:
            return "estimated from characters"
        whole = all(rate.all for rate in self._rates.values())
        return f"counted with {self._counter[0]}" + ("" if whole else ", on a part of each domain")


def _judge_prompt(
    judge: Judge, sample: Sample, prediction: Prediction | None, expected: str
) -> tuple[Message, ...]:
    """The judge's messages on a stored prediction, or on what is `expected` of one that is to come."""
    shown = expected if prediction is None else judge.shown(prediction) or ""
    return judge.request(sample, shown, raw=prediction.text if prediction else None).messages


def _common(before: Sequence[Message], now: Sequence[Message]) -> tuple[Message, ...]:
    """What two prompts begin with, the last message perhaps in part."""
    common: list[Message] = []
    for one, other in zip(before, now, strict=False):
        if one.role != other.role:
            break
        length = common_prefix(one.content, other.content)
        common.append(Message(role=other.role, content=other.content[:length]))
        if length < len(other.content):
            break
    return tuple(common) if len(common) > 1 or (common and common[0].content) else ()


def common_prefix(one: str, other: str) -> int:
    """Characters that two texts begin with alike, found by halving: texts of 100 KB are compared in parts."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
