"""A bundle on the Hugging Face hub: its files in a dataset repository, its scores in the model's own.

In: a prepared bundle, names of repositories. Out: commits or pull requests, made by `huggingface_hub` with the user's own
login (`HF_TOKEN`, `hf auth login`), which is neither read nor stored here. The scores are `.eval_results/*.yaml` [hub-docs:
eval-results]: one value an entry, 0-100, one entry for the average and one for each domain, with what they rest on in `notes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from agentworldbench.download import first_line, shown, unreached
from agentworldbench.errors import AwbError, ConfigError, CredentialsError, DataError, EndpointError
from agentworldbench.hub import check_endpoint, class_names, faults, http_status
from agentworldbench.leaderboard.entries import Entry
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.numbers import in_points
from agentworldbench.render.table import Table, points
from agentworldbench.stats.results import JudgeResults
from agentworldbench.submission.manifest import NAMES
from agentworldbench.submission.pack import Prepared

_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
OVERALL: Final = "overall"


@dataclass(frozen=True)
class HubTarget:
    """A dataset repository for the bundle and, where it is named, a model repository for its scores.

    `judge` says whose scores, where there are several. `create_pr` opens a pull request in place of a commit: at the model,
    which is often somebody else's, or at the dataset where no model is named. A dataset repository that does not exist
    is made, `private` where that is wanted.
    """

    dataset: str
    model: str | None = None
    judge: str | None = None
    create_pr: bool = False
    private: bool = False

    @property
    def leaves(self) -> bool:
        """An upload leaves this machine."""
        return True

    def check(self) -> None:
        """Refuse names that are none."""
        for flag, name in (("--repository", self.dataset), ("--model-repository", self.model)):
            if name is not None and not _NAME.fullmatch(name):
                raise ConfigError(f"{flag} {name}: expected OWNER/NAME")

    def told(self, prepared: Prepared) -> list[str]:
        """The files by their names on the hub, and the scores word for word."""
        how = {True: "as a pull request", False: "as a commit"}
        seen = "private" if self.private else "public"
        lines = [
            f"Goes to the dataset repository {self.dataset} on the hub {how[self._pulls('dataset')]} (made {seen} where it does not exist): "
            f"README.md and the files above in {folder_of(prepared)}/."
        ]
        if self.model:
            text = eval_results_text(self._scores(prepared))
            lines += [
                f"Goes to the model repository {self.model} {how[self._pulls('model')]}, as {self._path(prepared)}:",
                "",
                text,
            ]
        return lines

    def deliver(self, prepared: Prepared) -> list[str]:
        """Upload. Raises CredentialsError, EndpointError or ConfigError."""
        files: dict[str, bytes | Path] = {"README.md": card(prepared, self.dataset).encode("utf-8")}
        for name in NAMES:
            if (prepared.folder / name).is_file():
                files[f"{folder_of(prepared)}/{name}"] = prepared.folder / name
        title = f"awb run {prepared.sha256[:12]}"
        done = [self._commit(self.dataset, "dataset", files, title)]
        if self.model:
            scores = eval_results_text(self._scores(prepared)).encode("utf-8")
            title = "AgentWorldBench scores by awb"
            done.append(self._commit(self.model, "model", {self._path(prepared): scores}, title))
        return done

    def _pulls(self, kind: str) -> bool:
        return self.create_pr and (kind == "model" or self.model is None)

    def _scores(self, prepared: Prepared) -> list[dict[str, Any]]:
        return eval_results(prepared, self.judge, f"{_hub()}/datasets/{self.dataset}")

    def _path(self, prepared: Prepared) -> str:
        judge, _ = _chosen(prepared, self.judge)
        return f".eval_results/agentworldbench-{judge.judge.protocol}-{judge.judge.digest[:8]}.yaml"

    def _commit(self, repository: str, kind: str, files: dict[str, bytes | Path], title: str) -> str:
        with _explained(repository):
            from huggingface_hub import CommitOperationAdd, HfApi

            api = HfApi(library_name="agentworldbench")
            if kind == "dataset":
                api.create_repo(repository, repo_type=kind, private=self.private, exist_ok=True)
            operations = [CommitOperationAdd(path, content) for path, content in files.items()]
            made = api.create_commit(
                repository, operations, commit_message=title, repo_type=kind, create_pr=self._pulls(kind)
            )
        return f"{repository}: {made.pr_url or made.commit_url}"


def folder_of(prepared: Prepared) -> str:
    """The folder of a bundle in its dataset repository, so that one may hold several."""
    return f"bundle-{prepared.sha256[:12]}"


def eval_results(prepared: Prepared, judge: str | None, source: str) -> list[dict[str, Any]]:
    """What `.eval_results/*.yaml` holds. Raises DataError for a run that is not over the whole of a hub's data set."""
    chosen, entry = _chosen(prepared, judge)
    data = prepared.manifest.data
    if data.repository is None:
        raise DataError(
            f"data {data.name} is no data set of the hub; only runs on one have a place in a model's scores"
        )
    if entry.group.departures:
        raise DataError(
            f"scores of a model are those of a whole run; this one is {'; '.join(entry.group.departures)}"
        )
    revision = {"revision": data.revision} if data.revision else {}
    values = {OVERALL: entry.computed_overall} if set(entry.scores) >= set(OFFICIAL_DOMAINS) else {}
    values |= entry.scores
    return [
        {
            "dataset": {"id": data.repository, "task_id": task, **revision},
            "value": round(value, 2),
            "date": prepared.manifest.created[:10],
            "source": {"url": source, "name": "awb run with raw replies"},
            "notes": _notes(prepared, chosen, entry, task),
        }
        for task, value in values.items()
    ]


def _notes(prepared: Prepared, judge: JudgeResults, entry: Entry, task: str) -> str:
    block = judge.micro if task == OVERALL else judge.domains[task]
    interval = in_points(entry.overall_interval if task == OVERALL else entry.intervals.get(task))
    served = judge.served[0] if len(judge.served) == 1 else judge.judge.model
    temperature = judge.judge.sampling.get("temperature")
    heat = f" T{temperature}" if isinstance(temperature, int | float) else ""
    words = [
        f"judge={served} x{prepared.results.repeats.get(judge.judge.digest, 1)}{heat}",
        *(["macro"] if task == OVERALL else []),
        f"protocol {judge.judge.protocol}, {entry.policy}",
        f"coverage {block.scored}/{block.samples}",
        *([f"95% CI ±{points(interval.half)}"] if interval and interval.half is not None else []),
        f"awb {prepared.manifest.harness.version}",
        f"bundle {prepared.sha256[:12]}",
    ]
    return "; ".join(words)


def _chosen(prepared: Prepared, judge: str | None) -> tuple[JudgeResults, Entry]:
    results = prepared.results
    if not results.judges:
        raise DataError(
            "the run has no judge; a model's scores on the hub are those of one (`awb judge RUN --judge …`)"
        )
    entries = {
        entry.group.judge_digest: entry for entry in measured_entries(results, prepared.record, subset=True)
    }
    pairs = [(one, entries[one.judge.digest]) for one in results.judges if one.judge.digest in entries]
    fitting = [pair for pair in pairs if judge in (None, pair[0].judge.model, pair[0].judge.digest)]
    if len(fitting) != 1:
        listed = ", ".join(f"{one.judge.model} ({one.judge.digest})" for one, _ in pairs)
        raise ConfigError(
            f"name the judge whose scores are meant with --judge, by its digest if need be: {listed}"
        )
    return fitting[0]


def eval_results_text(entries: list[dict[str, Any]]) -> str:
    """The YAML file."""
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000)


def card(prepared: Prepared, repository: str) -> str:
    """`README.md` of the dataset repository: what the run is, how to check it, and the wish not to be indexed."""
    manifest = prepared.manifest
    head = {"pretty_name": f"awb run {prepared.sha256[:12]}", "viewer": False,
            "tags": ["agentworldbench", "evaluation", "world-model"]}  # fmt: skip
    domains = [name for name in OFFICIAL_DOMAINS if any(name in claim.scores for claim in manifest.claims)]
    domains += sorted({name for claim in manifest.claims for name in claim.scores} - set(domains))
    rows = tuple(
        (
            manifest.claimant(claim),
            points(claim.overall),
            *(points(claim.scores.get(name)) for name in domains),
        )
        for claim in manifest.claims
    )
    table = Table(f"{manifest.model} on {manifest.data.name}", ("By", "Overall", *domains), rows, ("By",))
    folder = folder_of(prepared)
    return f"""---
{yaml.safe_dump(head, sort_keys=False).strip()}
---

One evaluation with agentworldbench (`awb`), with every raw reply of the model and its judges.

{table.to_markdown()}
Scores are 0-100; those of unlike data, protocols or judges do not compare. To check them without asking a model:

```
hf download {repository} --repo-type dataset --local-dir run
awb verify run/{folder}
```

The bundle's SHA-256 (of `{folder}/manifest.json`) is `{prepared.sha256}`.

The files repeat texts of a benchmark. Please do not index them, and keep them out of training sets: `{CANARY}`
"""


def _hub() -> str:
    with _explained(""):
        from huggingface_hub import constants

        return str(constants.ENDPOINT)


@contextmanager
def _explained(repository: str) -> Iterator[None]:
    """Turn what the hub's library raises into an error of ours."""
    check_endpoint()
    try:
        yield
    except faults() as problem:
        raise _explanation(repository, problem) from problem
    except LookupError as problem:  # an answer that is no hub's lacks what the library looks up
        raise _explanation(repository, problem) from problem


def _status_in(text: str) -> int | None:
    """The HTTP status that hf_xet, through which the library sends large files, tells in words alone."""
    found = re.search(r"HTTP status (?:client|server) error \((\d{3})", text)
    return int(found[1]) if found else None


def _explanation(repository: str, problem: Exception) -> AwbError:
    from huggingface_hub import constants

    names, reason = class_names(problem), first_line(problem)
    status = http_status(problem) or _status_in(reason)
    if "OfflineModeIsEnabled" in names:
        return EndpointError(f"{repository}: HF_HUB_OFFLINE is set; nothing was uploaded")
    if status in (401, 403) or "LocalTokenNotFoundError" in names:
        return CredentialsError(
            f"{repository}: {constants.ENDPOINT} refused (HTTP {status}); log in with `hf auth login`, or set HF_TOKEN to a "
            "token that may write there"
        )
    if "RepositoryNotFoundError" in names:
        return ConfigError(f"{repository}: the hub has no such repository, or HF_TOKEN may not see it")
    if status:
        reason = f"{shown(constants.ENDPOINT)} answered HTTP {status}"
    elif isinstance(problem, LookupError):
        reason = f"{shown(constants.ENDPOINT)}: what answered is no hub (HF_ENDPOINT?)"
    elif isinstance(problem, ConnectionError) or not isinstance(problem, ValueError | RuntimeError):
        reason = f"{shown(constants.ENDPOINT)}: {unreached(constants.ENDPOINT, problem)}"
    return EndpointError(f"{repository}: {reason}; run the same command again, what is there already stays")
