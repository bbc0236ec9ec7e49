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
from agentworldbench.prompts import VERDICT_SCHEMA, judge_messages, judge_prompt_hashes, reference_observation
from agentworldbench.protocol import Protocol
from agentworldbench.records import Completion, Failure, FailureKind, Request, Sample, Sampling
from agentworldbench.reply import parts_of
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.verdict import TAG, ReadVerdict, read_verdict
from agentworldbench.task import Task
from agentworldbench.texts import digest, sha256_text


@dataclass(frozen=True)
class Judge:
    """A judge model with its sampling, its protocol and the tasks whose prompts it is given."""

    model: Model
    sampling: Sampling
    protocol: Protocol
    tasks: Mapping[str, Task]
    as_json: bool
    attempts: int
    min_output: int = 512

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
            "prompts": judge_prompt_hashes(self.as_json),
        }
        return JudgeRecord(
            digest=digest(asked)[:16],
            model=self.model.name,
            **asked,
            system_prompts={domain: self.system_sha256(domain) for domain in self.tasks},
            parse=self.protocol.parse,
            attempts=self.attempts,
            min_output=self.min_output,
            max_context=self.model.limits.context,
        )

    @cached_property
    def _digest(self) -> str:
        return self.record().digest

    def digest(self) -> str:
        """16 hex digits that name this judge in every verdict."""
        return self._digest

    def system_sha256(self, domain: str) -> str:
        """Hash of a domain's system prompt; a verdict given under another one does not count."""
        return sha256_text(self.tasks[domain].judge_system_prompt)

    def request(self, sample: Sample, observation: str, epoch: int = 1, repeat: int = 1) -> Request:
        """The question about one prediction."""
        return Request(
            sample=sample,
            messages=judge_messages(self.tasks[sample.ref.domain], sample, observation, self.as_json),
            sampling=self.sampling,
            epoch=epoch,
            repeat=repeat,
            json_schema=VERDICT_SCHEMA if self.as_json else None,
        )

    def read(self, completion: Completion, sample: Sample, observation: str) -> ReadVerdict | Failure:
        """The verdict in a reply, or why there is none.

        A cut reply that holds a verdict counts, unless it was cut while thinking (a draft).
        """
        text = completion.text or ""
        parts = parts_of(text, TAG)
        apart, _ = reasoning_of(completion, parts)
        answer = parts.outside(parts.begin(apart))
        reference = reference_observation(sample, self.tasks[sample.ref.domain])
        shown = (observation, reference, *sample.prompts, *sample.responses)
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
