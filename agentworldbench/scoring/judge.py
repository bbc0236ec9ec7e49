"""One judge: what it is asked about a prediction, and what its reply means.

In: a sample, the predicted observation, the judge's settings. Out: the `Request` to send, and from
a completion a verdict or a typed failure. The judge itself is a `Model` like any other; sending,
retrying and asking again are the engine's work. A judge's digest names what can change its answer to
a given text: model, sampling, prompts and schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from agentworldbench.models import Model
from agentworldbench.observation import reasoning_of, reply_failure
from agentworldbench.official import official_observation
from agentworldbench.official_diagnostics import DOMAINS, VERSION, diagnostics_block
from agentworldbench.official_files import OfficialPrompts
from agentworldbench.prompts import VERDICT_SCHEMA, judge_messages, judge_prompt_hashes, reference_observation
from agentworldbench.prompts_official import official_judge_messages
from agentworldbench.protocol import Protocol
from agentworldbench.records import (
    Completion,
    Failure,
    FailureKind,
    Message,
    Prediction,
    Request,
    Sample,
    Sampling,
    Verdict,
)
from agentworldbench.reply import parts_of
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.official_verdict import read_official
from agentworldbench.scoring.verdict import TAG, ReadVerdict, read_verdict
from agentworldbench.task import Task
from agentworldbench.texts import digest, sha256_text


@dataclass(frozen=True)
class Judge:
    """A judge model with its sampling, its protocol and the tasks whose prompts it is given.

    `official` holds the prompt files of the protocol `official`, and is None under any other;
    `diagnostics` adds a block of counts that only the official GUI prompts speak of.
    """

    model: Model
    sampling: Sampling
    protocol: Protocol
    tasks: Mapping[str, Task]
    as_json: bool
    attempts: int
    min_output: int = 512
    official: OfficialPrompts | None = None
    diagnostics: bool = False

    def record(self) -> JudgeRecord:
        """What is recorded of a judge; its digest names it in every verdict.

        The digest covers what changes a judge's answer to a given text, so neither its address nor
        the domains of a run.
        """
        asked = {
            "identity": self.model.identity(),
            "protocol": self.protocol.name,
            "protocol_version": self.protocol.version,
            "sampling": self.sampling.described(),
            "schema_sha256": digest(VERDICT_SCHEMA) if self.as_json else None,
            "prompts": self._prompt_hashes(),
        }
        record = JudgeRecord(
            digest="",
            model=self.model.name,
            **asked,
            system_prompts={domain: self.system_sha256(domain) for domain in self.tasks},
            parse=self.protocol.parse,
            attempts=self.attempts,
            min_output=self.min_output,
            max_context=self.model.limits.context,
        )
        return record.model_copy(update={"digest": digest_of(record)})

    @cached_property
    def _digest(self) -> str:
        return self.record().digest

    def digest(self) -> str:
        """16 hex digits that name this judge in every verdict."""
        return self._digest

    def _prompt_hashes(self) -> dict[str, str]:
        """Of what all domains share; the official files are named by their own hashes."""
        if self.official is None:
            return judge_prompt_hashes(self.as_json)
        added = {"diagnostics": VERSION} if self.diagnostics else {}
        return {"user": self.official.sha256["user"]} | added

    def system_sha256(self, domain: str) -> str:
        """Hash of a domain's system prompt; a verdict given under another one does not count."""
        if self.official:
            return sha256_text(self.official.system(domain))
        return sha256_text(self.tasks[domain].judge_system_prompt)

    def shown(self, prediction: Prediction) -> str | None:
        """What the judge sees of a prediction; None where there is nothing to judge.

        By the strict rules a failed prediction; by the official ones only a reply without content.
        """
        if self.protocol.parse == "strict":
            return prediction.observation
        task = self.tasks[prediction.sample_id.partition("/")[0]]
        return official_observation(
            prediction.text, prediction.observation, task.prediction_tag, task.markers.observation
        )

    def request(
        self, sample: Sample, observation: str, epoch: int = 1, repeat: int = 1, raw: str | None = None
    ) -> Request:
        """The question about one prediction; `raw` is the whole reply that it was taken from."""
        task = self.tasks[sample.ref.domain]
        messages: tuple[Message, ...]
        if self.official:
            shown = self.diagnostics and task.domain in DOMAINS
            counts = diagnostics_block(raw, observation, task.prediction_tag) if shown else ""
            messages = official_judge_messages(self.official, task, sample, observation, counts)
        else:
            messages = judge_messages(task, sample, observation, self.as_json)
        return Request(
            sample=sample,
            messages=messages,
            sampling=self.sampling,
            epoch=epoch,
            repeat=repeat,
            json_schema=VERDICT_SCHEMA if self.as_json else None,
            again_if_empty=False,  # an attempt of its own, of `attempts`
        )

    def read(self, completion: Completion, sample: Sample, observation: str) -> ReadVerdict | Failure:
        """The verdict in a reply by the strict rules, or why there is none."""
        return strict_verdict(completion, sample, observation, self.tasks[sample.ref.domain])

    def unread(self, text: str | None, strict: ReadVerdict | Failure | None) -> FailureKind | None:
        """Why a reply is to be asked for again, by this protocol's own reading; None where it counts.

        `strict` is its strict reading, None where that succeeded.
        """
        kind = strict.kind if isinstance(strict, Failure) else None
        if self.protocol.parse == "strict":
            return kind if kind in ASK_AGAIN else None
        return None if read_official(text or "").success else kind or FailureKind.JUDGE_UNPARSED

    def failed(self, verdict: Verdict) -> Failure | None:
        """The failure of a stored verdict, by this protocol's own reading."""
        if self.protocol.parse == "official" and verdict.reply is not None:
            unread = self.unread(verdict.reply, verdict.failure)
            message = "the official rules find no verdict in the reply"
            return Failure(kind=unread, message=message) if unread else None
        return verdict.failure


def digest_of(record: JudgeRecord) -> str:
    """The digest that a judge's record must have: over what changes its answer to a given text."""
    covered = ("identity", "protocol", "protocol_version", "sampling", "schema_sha256", "prompts")
    return digest({name: getattr(record, name) for name in covered})[:16]


def strict_verdict(
    completion: Completion, sample: Sample, observation: str, task: Task
) -> ReadVerdict | Failure:
    """The verdict in a judge's reply on `observation` by the strict rules, or why there is none.

    A cut reply that holds a verdict counts, unless it was cut while thinking (a draft).
    """
    text = completion.text or ""
    parts = parts_of(text, TAG)
    apart, _ = reasoning_of(completion, parts)
    answer = parts.outside(parts.begin(apart))
    shown = (observation, reference_observation(sample, task), *sample.prompts, *sample.responses)
    verdict = read_verdict(text, shown, apart)
    whole = isinstance(verdict, ReadVerdict) and not (parts.open or parts.doubtful)
    failure = reply_failure(completion, whole, bool(answer.strip()))
    return failure or verdict


ASK_AGAIN = frozenset(
    {
        FailureKind.JUDGE_UNPARSED,
        FailureKind.JUDGE_AMBIGUOUS,
        FailureKind.EMPTY,
        FailureKind.TRUNCATED,
        FailureKind.TOOL_CALL,
        FailureKind.REFUSED,
    }
)
"""Failures of a judge's reply that another attempt may cure (up to `--judge-attempts`)."""
