"""Where data files come from: the bundled set, a folder, or a dataset repository on a hub.

In: the word after `--data` and the tasks wanted. Out: a `Source` with one local file per domain, a
name, and for hubs the resolved commit. The official set is pinned to one revision. Downloads go
through `huggingface_hub`, so `HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HOME` and `HF_TOKEN` mean what
they mean everywhere; the library is imported only when a hub is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.errors import DataError
from agentworldbench.resources import mini_folder
from agentworldbench.task import Task, load_tasks
from agentworldbench.yamlfile import did_you_mean

OFFICIAL_REPOSITORY: Final = "Qwen/AgentWorldBench"
OFFICIAL_REVISION: Final = "6b8d28437042434dcdd168434227ca0de408c5ba"


@dataclass(frozen=True)
class Source:
    """Local files by domain, and what they are called in results.

    `name` is `mini`, `official`, `hf:REPO@REVISION` or `folder NAME`; only `official` may stand beside
    published scores.
    """

    name: str
    files: Mapping[str, Path]
    tasks: Mapping[str, Task]
    repository: str | None = None
    revision: str | None = None


def resolve_source(data: str, task_names: tuple[str, ...] = (), missing_ok: bool = False) -> Source:
    """Find or fetch the files that `--data` names, for the tasks named or for all that it has.

    With `missing_ok` a folder may lack files of tasks that are named; they are left out.
    Raises DataError when a folder, file, repository or revision is missing, TaskError for tasks.
    """
    tasks = load_tasks(task_names)
    if data == "official":
        return _from_hub(data, OFFICIAL_REPOSITORY, OFFICIAL_REVISION, tasks)
    if data.startswith("hf:"):
        repository, _, revision = data.removeprefix("hf:").partition("@")
        if repository.count("/") != 1:
            raise DataError(f"--data {data}: expected hf:OWNER/NAME, with @REVISION if it shall be pinned")
        return _from_hub(data, repository, revision or None, tasks)
    if data == "mini":
        return _from_folder("mini", mini_folder(), tasks, bool(task_names), missing_ok)
    folder = Path(data).expanduser()
    if not folder.is_dir():
        hint = did_you_mean(data, ("mini", "official"))
        raise DataError(f"--data {data}: no such folder{hint} (mini, official, hf:OWNER/NAME or a folder)")
    return _from_folder(f"folder {folder.resolve().name}", folder, tasks, bool(task_names), missing_ok)


def _from_folder(name: str, folder: Path, tasks: dict[str, Task], chosen: bool, missing_ok: bool) -> Source:
    present = {path.name for path in folder.glob("*_test.jsonl")}
    known = {task.data_file for task in tasks.values()}
    if chosen and not missing_ok:
        for domain, task in tasks.items():
            if not (folder / task.data_file).is_file():
                has = ", ".join(sorted(present)) or "no {domain}_test.jsonl file"
                raise DataError(
                    f"{folder}: no file {task.data_file} for domain '{domain}' (the folder has {has})"
                )
    elif not chosen:
        for stray in sorted(present - known):
            domain = stray.removesuffix("_test.jsonl")
            raise DataError(
                f"{folder / stray}: unknown domain '{domain}'{did_you_mean(domain, tasks)}; name the domains to use "
                "with --tasks, or give its task file too (--tasks FOLDER,terminal)"
            )
    tasks = {domain: task for domain, task in tasks.items() if (folder / task.data_file).is_file()}
    if not tasks and not missing_ok:
        raise DataError(f"{folder}: no {{domain}}_test.jsonl file in this folder")
    return Source(
        name=name, files={domain: folder / task.data_file for domain, task in tasks.items()}, tasks=tasks
    )


def _from_hub(name: str, repository: str, revision: str | None, tasks: dict[str, Task]) -> Source:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    files: dict[str, Path] = {}
    commit: str | None = None  # of the first file: `main` may move while the others are fetched
    for domain, task in tasks.items():
        place = f"{repository}@{revision or 'main'}/{task.data_file}"
        try:
            path = hf_hub_download(
                repository, task.data_file, repo_type="dataset", revision=commit or revision
            )
        except LocalEntryNotFoundError as problem:
            cause = f" ({str(problem.__cause__).splitlines()[0]})" if str(problem.__cause__ or "") else ""
            raise DataError(
                f"{place}: not in the local cache and the hub cannot be reached{cause}; run once with network (and "
                "without HF_HUB_OFFLINE), or give a folder with --data PATH"
            ) from problem
        except RevisionNotFoundError as problem:
            raise DataError(f"{place}: the repository has no such revision") from problem
        except RepositoryNotFoundError as problem:
            raise DataError(
                f"{place}: the hub has no such dataset repository, or HF_TOKEN may not read it"
            ) from problem
        except EntryNotFoundError as problem:
            raise DataError(
                f"{place}: the repository has no such file; choose domains with --tasks"
            ) from problem
        except (HfHubHTTPError, OSError, ValueError) as problem:
            raise DataError(f"{place}: {str(problem).splitlines()[0]}") from problem
        files[domain] = Path(path)
        commit = commit or _commit_of(files[domain])
    label = name if name == "official" else f"hf:{repository}@{commit or revision or 'main'}"
    return Source(name=label, files=files, tasks=tasks, repository=repository, revision=commit or revision)


def _commit_of(path: Path) -> str | None:
    """The commit that a cached file belongs to: its snapshot folder's name."""
    parts = path.parts
    for place in range(len(parts) - 2, 0, -1):
        if parts[place - 1] == "snapshots":
            return parts[place]
    return None
