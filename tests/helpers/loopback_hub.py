"""A loopback stand-in for the Hugging Face Hub that serves one data set from local folders.

In: a folder, its commit hash, optionally further commits with folders of their own. Out:
`endpoint` for HF_ENDPOINT (huggingface_hub reads it at import: set it for a subprocess) and the
requests as `requests`. It answers what `hf_hub_download`, `snapshot_download` and `HfApi` ask of
the read-only API: resolve (HEAD and GET, with Range), dataset info, tree, paths-info; `file_server.py`
tells what can go wrong with a file. Files with an LFS suffix are described by their SHA-256, others by
their git blob id, as on the Hub. There are no Xet headers, so the client takes the plain HTTP way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web

from .app_thread import HOST
from .file_server import BLOCK, Asked, FileServer, Handler

COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class _File:
    path: str
    source: Path
    size: int
    blob_id: str
    sha256: str | None
    """Set for LFS files only."""

    @property
    def etag(self) -> str:
        return self.sha256 or self.blob_id

    def lfs(self, digest_name: str) -> dict[str, Any]:
        if self.sha256 is None:
            return {}
        return {"lfs": {digest_name: self.sha256, "size": self.size, "pointerSize": 134}}

    def tree_entry(self) -> dict[str, Any]:
        entry = {"type": "file", "path": self.path, "oid": self.blob_id, "size": self.size}
        return {**entry, **self.lfs("oid")}

    def sibling(self, blobs: bool) -> dict[str, Any]:
        if not blobs:
            return {"rfilename": self.path}
        sibling = {"rfilename": self.path, "size": self.size, "blobId": self.blob_id}
        return {**sibling, **self.lfs("sha256")}


class LoopbackHub(FileServer):
    """Serves between `__enter__` and `__exit__`; the folders are read once, at the start."""

    def __init__(
        self,
        folder: Path,
        *,
        repo_id: str = "Qwen/AgentWorldBench",
        commit: str = COMMIT,
        other_commits: Mapping[str, Path] | None = None,
        lfs_suffixes: tuple[str, ...] = (".jsonl", ".parquet"),
    ) -> None:
        """`commit` is what `main` points to; `other_commits` can only be asked for by their hash."""
        super().__init__()
        self.repo_id = repo_id
        self.commit = commit
        self.fail_with: int | None = None
        """A status for every request from now on, e.g. 500 or 429."""
        folders = {commit: folder, **(other_commits or {})}
        self._trees = {name: _read(path, lfs_suffixes) for name, path in folders.items()}
        app = self.app
        api = f"/api/datasets/{repo_id}"
        app.router.add_get(f"/datasets/{repo_id}/resolve/{{revision}}/{{path:.+}}", self._resolve)
        app.router.add_get(api, self._info)
        app.router.add_get(f"{api}/revision/{{revision}}", self._info)
        app.router.add_get(f"{api}/tree/{{revision}}", self._tree)
        app.router.add_get(f"{api}/tree/{{revision}}/{{path:.+}}", self._tree)
        app.router.add_post(f"{api}/paths-info/{{revision}}", self._paths_info)

    @property
    def endpoint(self) -> str:
        """Value for HF_ENDPOINT."""
        return self.origin

    @property
    def requests(self) -> tuple[Asked, ...]:
        """All requests in order of arrival."""
        return tuple(self.asked)

    def environment(self, home: Path) -> dict[str, str]:
        """Variables that point a subprocess to this hub with an own cache; add them to `os.environ`.

        Also without the token of the user, telemetry and progress bars.
        """
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_TOKEN_PATH": str(home / "token"),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "NO_PROXY": HOST,
            "no_proxy": HOST,
        }

    async def answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.fail_with is not None:
            return _refusal(self.fail_with, None, f"scripted status {self.fail_with}")
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return _refusal(404, "RepoNotFound", "Repository not found")

    def _commit_of(self, request: web.Request) -> str | None:
        revision = unquote(request.match_info.get("revision", "main"))
        commit = self.commit if revision == "main" else revision
        return commit if commit in self._trees else None

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        commit = self._commit_of(request)
        if commit is None:
            return _refusal(404, "RevisionNotFound", "Invalid rev id")
        file = self._trees[commit].get(request.match_info["path"])
        if file is None:
            return _refusal(404, "EntryNotFound", "Entry not found", commit)
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{file.etag}"',
            "Content-Type": "application/octet-stream",
        }
        if file.sha256 is not None:
            headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(file.size)}
        return await self.send(request, file.path, file.source.read_bytes(), headers)

    async def _info(self, request: web.Request) -> web.StreamResponse:
        commit = self._commit_of(request)
        if commit is None:
            return _refusal(404, "RevisionNotFound", "Invalid rev id")
        blobs = request.query.get("blobs", "").lower() == "true"
        siblings = [file.sibling(blobs) for file in self._trees[commit].values()]
        info = {"id": self.repo_id, "sha": commit, "private": False, "gated": False, "disabled": False}
        return web.json_response({**info, "tags": [], "siblings": siblings})

    async def _tree(self, request: web.Request) -> web.StreamResponse:
        commit = self._commit_of(request)
        if commit is None:
            return _refusal(404, "RevisionNotFound", "Invalid rev id")
        under = PurePosixPath(unquote(request.match_info.get("path", ".")))
        recursive = request.query.get("recursive", "").lower() == "true"
        entries: dict[str, dict[str, Any]] = {}
        for file in self._trees[commit].values():
            path = PurePosixPath(file.path)
            if under not in path.parents:
                continue
            for parent in reversed(path.parents):
                if under in parent.parents and (recursive or parent.parent == under):
                    entries.setdefault(str(parent), _folder_entry(str(parent)))
            if recursive or path.parent == under:
                entries[file.path] = file.tree_entry()
        if not entries:
            return _refusal(404, "EntryNotFound", "Entry not found", commit)
        return web.json_response(list(entries.values()))

    async def _paths_info(self, request: web.Request) -> web.StreamResponse:
        commit = self._commit_of(request)
        if commit is None:
            return _refusal(404, "RevisionNotFound", "Invalid rev id")
        wanted = (await request.post()).getall("paths", [])
        found = [self._trees[commit].get(str(path)) for path in wanted]
        return web.json_response([file.tree_entry() for file in found if file is not None])


def _read(folder: Path, lfs_suffixes: tuple[str, ...]) -> dict[str, _File]:
    files: dict[str, _File] = {}
    for source in sorted(path for path in folder.rglob("*") if path.is_file()):
        path = source.relative_to(folder).as_posix()
        size = source.stat().st_size
        blob = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        content = hashlib.sha256()
        with source.open("rb") as stream:
            while block := stream.read(BLOCK):
                blob.update(block)
                content.update(block)
        sha256 = content.hexdigest() if source.suffix in lfs_suffixes else None
        files[path] = _File(path, source, size, blob.hexdigest(), sha256)
    return files


def _folder_entry(path: str) -> dict[str, Any]:
    oid = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()
    return {"type": "directory", "path": path, "oid": oid, "size": 0}


def _refusal(status: int, code: str | None, message: str, commit: str | None = None) -> web.Response:
    headers = {"X-Error-Message": message}
    if code is not None:
        headers["X-Error-Code"] = code
    if commit is not None:
        headers["X-Repo-Commit"] = commit
    return web.json_response({"error": message}, status=status, headers=headers)
