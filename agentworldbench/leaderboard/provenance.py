"""What stands behind a measured entry: the run, its judges, what it cost, who sent it in, and its bundle.

Plain records, all of them copied from a run or given by a person; a reported row has none of them. Nothing here
holds a path or an address of the machine that ran: only names, hashes, settings and counts.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from agentworldbench.records import Record
from agentworldbench.run_record import Grown, JudgeRecord, PredictSection
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.results import FromCache
from agentworldbench.texts import UTC_TIME, count_text

HTTP_URL: Final = r"^https?://[^\s<>\"]+$"
SHA256: Final = r"^[0-9a-f]{64}$"


class Submitter(Record):
    """Who answers for an entry. `url` and `contact` are shown as they are given."""

    name: str = Field(min_length=1, max_length=200)
    url: str | None = Field(default=None, pattern=HTTP_URL)
    contact: str | None = Field(default=None, max_length=200)


class Bundle(Record):
    """The bundle that holds predictions and replies: its hash, and where it lies if that is public."""

    sha256: str = Field(pattern=SHA256)
    url: str | None = Field(default=None, pattern=HTTP_URL)


class VerifiedAudit(Record):
    """The audit that a verification rests on: the digest of the judge that was asked again, about how many samples, drawn
    by which seed, and the mean of new minus stored in points (0-100)."""

    judge: str
    seed: int
    judged: int = Field(ge=1)
    mean_difference: float
    decision: Literal["accepted"] = "accepted"


class Verification(Grown):
    """Who replayed which bundle, when (UTC), with which harness, and what it came to; `awb verify --verified-by` writes it.

    `entry_sha256` is the digest of the entry as it was verified, name, submitter, note and links among it
    (`entries.entry_digest`), `warnings` counts the findings that were left to the maintainer, `audit` is None where no
    judge was asked again. Versions before this digest wrote `numbers_sha256`, which left out what people say: it is
    read, and counts for nothing.
    """

    by: str = Field(min_length=1, max_length=200)
    date: str = Field(pattern=UTC_TIME)
    bundle_sha256: str = Field(pattern=SHA256)
    entry_sha256: str | None = Field(default=None, pattern=SHA256)
    harness: str = Field(min_length=1, max_length=100)
    verdict: Literal["accepted"] = "accepted"
    warnings: int = Field(ge=0)
    audit: VerifiedAudit | None = None
    numbers_sha256: str | None = Field(default=None, pattern=SHA256)

    LATER: ClassVar = ("numbers_sha256",)

    @property
    def words(self) -> str:
        """All of it on one line."""
        audit = (
            "no audit"
            if self.audit is None
            else f"an audit of {count_text(self.audit.judged, 'sample')} accepted"
        )
        return f"{self.by}, {self.date[:10]}, awb {self.harness}, {audit}"


class EntryJudge(Record):
    """One judge with its settings and prompt hashes, the names it was served under, verdicts on each prediction."""

    judge: JudgeRecord
    served: tuple[str, ...]
    repeats: int = 1


class Costs(Record):
    """Tokens and USD by stage, and what came from a cache of answers. `answers` counts predictions, each sample once
    an epoch; `verdicts` is None where nobody judged. An unknown cost is None, never 0."""

    answers: int
    predictions: Spending
    predictions_from_cache: FromCache = FromCache()
    verdicts: Spending | None = None
    verdicts_from_cache: FromCache = FromCache()

    @property
    def usd_per_thousand(self) -> float | None:
        """USD of the model alone for a thousand predictions, those from a cache at what they cost when they were
        asked for; None where a part of it is unknown."""
        spent, cached = self.predictions.cost_usd, self.predictions_from_cache.cost_usd
        if spent is None or cached is None or not self.answers:
            return None
        return 1000 * (spent + cached) / self.answers


class Provenance(Record):
    """The run: when it was begun, which tells it from others, and last worked on (UTC), with which harness and commit
    (None: an installed package), by which version it was scored, what fixed its predictions, how many samples of
    each domain, answers of each."""

    begun: str = Field(pattern=UTC_TIME)
    date: str = Field(pattern=UTC_TIME)
    harness: str
    git_commit: str | None
    git_dirty: bool | None
    scored_by: str
    predict: PredictSection
    samples: dict[str, int]
    epochs: int = 1
