"""Who judged, by which prompts, on which tasks: recorded digests against those of this harness.

In: a run's record. Out: judges made again from their records (for rendering), and hits where a record does not hold
together: a digest that is not that of its fields, prompts or tasks that are not this harness' own, a model that
answered under the name of another one. Names are what an endpoint says of itself; behind an address of one's own
anything can answer under any name, so there a name is only worth a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from agentworldbench.models.base import LocalAnswers
from agentworldbench.models.names import same_model
from agentworldbench.observation import EXTRACTION
from agentworldbench.official_files import OFFICIAL, OfficialPrompts
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import OTHER_SAMPLING, CallFailure, Completion, Request, Sampling
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.judge import Judge, digest_of
from agentworldbench.submission.redact import is_public
from agentworldbench.task import Task
from agentworldbench.verification.findings import Hit, Unchecked
from agentworldbench.verification.material import Material
from agentworldbench.version import __version__

_DEFAULT: Final = "server default"
HOSTED: Final = ("openai/", "anthropic/", "gemini/", "deepseek/", "xai/", "mistral/")
"""Providers that answer under a model's own name."""
ASKED_BY_NAME: Final = ("litellm", "openai-api")
"""Backends that ask for a model by the name that stands in its string."""


class _Recorded(LocalAnswers):
    """A judge model that is known from its record and asked nothing."""

    def __init__(self, record: JudgeRecord) -> None:
        super().__init__(record.model)
        self._identity = record.identity

    def identity(self) -> dict[str, Any]:
        """As it was recorded."""
        return self._identity

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Never asked."""
        raise AssertionError("a recorded judge is not asked")


def recorded_sampling(described: Mapping[str, Any]) -> Sampling:
    """The sampling that `Sampling.described` wrote down."""
    named = {name: described.get(name) for name in Sampling.model_fields if name != "extra"}
    fields = {name: None if value == _DEFAULT else value for name, value in named.items()}
    fields["thinking"] = fields["thinking"] or "default"
    extra = {
        name: value
        for name, value in described.items()
        if name not in named and not (name in OTHER_SAMPLING and value == _DEFAULT)
    }
    return Sampling.model_validate(fields | {"extra": extra})


def recorded_judge(record: JudgeRecord, tasks: Mapping[str, Task], prompts: OfficialPrompts | None) -> Judge:
    """The judge of a record with this harness' own prompts. Raises ValueError for a record that no judge has."""
    return Judge(
        model=_Recorded(record),
        sampling=recorded_sampling(record.sampling),
        protocol=PROTOCOLS[record.protocol],
        tasks=tasks,
        as_json=record.schema_sha256 is not None,
        attempts=record.attempts or 1,
        min_output=record.min_output or 1,
        official=prompts if record.protocol == "official" else None,
        diagnostics="diagnostics" in record.prompts,
    )


def check_judges(material: Material) -> tuple[dict[str, Judge], list[Hit], list[Unchecked]]:
    """Judges that can be rendered, by digest; what is wrong with the records; what cannot be told."""
    judges: dict[str, Judge] = {}
    hits: list[Hit] = []
    unchecked: list[Unchecked] = []
    for record in material.record.judges:
        if not record.sampling:
            why = f"{record.model}: the file that it was imported from does not say how it was asked"
            unchecked.append(Unchecked(check="judges", why=why))
            continue
        protocol = PROTOCOLS[record.protocol]
        if (protocol.version, protocol.parse) != (record.protocol_version, record.parse):
            message = "the judge's protocol has another version or reading than in this harness"
            hits.append(Hit("judges", "refused", message, f"{record.model}: {record.protocol}"))
            continue
        prompts = material.prompts
        try:
            judge = recorded_judge(record, material.tasks, prompts)
            hits += _mismatches(judge, record, material, prompts)
        except ValueError as problem:
            what = f"{record.model}: {str(problem).splitlines()[0]}"
            hits.append(Hit("judges", "refused", "the judge's record cannot be read", what))
            continue
        if protocol.name != "official" or prompts is not None:
            judges[record.digest] = judge
    return judges, hits, unchecked


def _mismatches(
    judge: Judge, record: JudgeRecord, material: Material, prompts: OfficialPrompts | None
) -> list[Hit]:
    hits = []
    if record.protocol == "official" and prompts is None:
        shared = {"user": OFFICIAL.template.sha256} | {
            name: text for name, text in record.prompts.items() if name == "diagnostics"
        }
        systems: dict[str, str] = {
            domain: OFFICIAL.systems[domain].sha256 for domain in material.tasks if domain in OFFICIAL.systems
        }
    else:
        made = judge.record()
        shared = made.prompts
        systems = {domain: judge.system_sha256(domain) for domain in material.tasks}
        if made.schema_sha256 != record.schema_sha256:
            hits.append(
                Hit("judges", "refused", "the judge's answer schema is not this harness' own", record.model)
            )
    own = digest_of(record)
    if own != record.digest:
        message = "the judge's digest is not that of its record: another judge gave these verdicts"
        hits.append(Hit("judges", "refused", message, f"{record.model}: {record.digest}, should be {own}"))
    if shared != record.prompts:
        hits.append(
            Hit(
                "judge prompts", "refused", OTHER_PROMPTS, f"{record.model}: {_names(shared, record.prompts)}"
            )
        )
    # A prompt for a domain that the run does not have makes another judge of it all the same: its digest is another.
    unused = {domain: None for domain in record.system_prompts if domain not in material.record.predict.tasks}
    for domain, sha256 in (systems | unused).items():
        if record.system_prompts.get(domain) != sha256:
            hits.append(
                Hit("judge prompts", "refused", OTHER_PROMPTS, f"{record.model}: system prompt of {domain}")
            )
    return hits


OTHER_PROMPTS: Final = "the judge was given other prompt files than those of its protocol"


def _names(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    names = {*one, *other}
    return ", ".join(sorted(name for name in names if one.get(name) != other.get(name)))


def check_tasks(material: Material) -> Iterator[Hit]:
    """Task digests and rules of extraction of the record against those of this harness."""
    predict, results = material.record.predict, material.results
    for domain, task in material.tasks.items():
        if predict.tasks.get(domain) != task.predict_digest():
            yield Hit(
                "tasks", "refused", "the task is not this harness' own (markers, tag or version)", domain
            )
        if results is not None and results.task_files.get(domain) != task.file_sha256():
            message = "the rule metrics were made by another task file than this harness' own"
            yield Hit("tasks", "refused", message, domain)
    if results is not None and results.made_by != __version__:
        message = "results were made by another version of awb: numbers may differ for that alone"
        yield Hit("tasks", "warning", message, f"{results.made_by}, here {__version__}")
    if predict.extraction != EXTRACTION:
        message = (
            "predictions were read by other rules than this version's; verify with the version that made them"
        )
        yield Hit("tasks", "refused", message, f"{predict.extraction}, here {EXTRACTION}")


def check_served(material: Material) -> Iterator[Hit]:
    """Whether models answered under the names that are claimed for them."""
    results = material.results
    if results is None:
        return
    sessions = material.record.sessions
    model = material.record.predict.model
    answered = any(one.text for one in material.store.predictions)
    urls = [one.model_url for one in sessions]
    yield from _served("model", results.model, model, results.predictions.served, urls, answered)
    for judge in results.judges:
        record = judge.judge
        urls = [one.judge_urls.get(record.digest) for one in sessions]
        # Of an imported judge nothing is known but its verdicts, which is said elsewhere.
        replied = bool(record.sampling) and any(
            one.reply for one in material.store.verdicts if one.judge == record.digest
        )
        yield from _served("judge", record.model, record.identity, judge.served, urls, replied)


def _served(
    role: str,
    claimed: str,
    identity: Mapping[str, Any],
    served: Sequence[str],
    urls: Sequence[str | None],
    answered: bool,
) -> Iterator[Hit]:
    """Of one model or judge: its string, what it was asked as, the names it answered under, and where."""
    hosted = claimed.startswith(HOSTED) and all(url is None or is_public(_host(url)) for url in urls)
    asked = str(identity.get("name"))
    if identity.get("backend") in ASKED_BY_NAME and asked.rpartition("/")[2] != claimed.rpartition("/")[2]:
        message = f"the {role} was asked for under another name than the one claimed"
        yield Hit("served names", "refused", message, f"{claimed}: {asked}")
    strangers = [name for name in served if not same_model(claimed, name)]
    if strangers:
        message = f"the {role} answered under another name than the one claimed"
        where = f"{claimed}: {', '.join(strangers[:5])}"
        yield Hit("served names", "refused" if hosted else "warning", message, where)
    if hosted and answered and not served:
        message = (
            f"the {role} is a hosted one, which names itself in every answer, and no answer here has a name"
        )
        yield Hit("served names", "refused", message, claimed)
    if len(served) > 1:
        where = f"{claimed}: {', '.join(served[:5])}"
        yield Hit("served names", "warning", "answers came under several names", where)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def named(judges: Iterable[JudgeRecord]) -> str:
    """Judges as a message names them."""
    return ", ".join(f"{one.model} ({one.digest})" for one in judges) or "none"
