"""A loopback stand-in for the Hugging Face Hub that takes uploads and keeps what it got.

In: which files it wants in large file storage, and the token that it takes. Out: `endpoint` for HF_ENDPOINT (set it for a
subprocess) and `commits`, each with its files' bytes. It answers what `create_repo` and `create_commit` ask: repos/create,
validate-yaml, preupload, LFS batch, upload and commit, pull requests included. With `xet` large files come in chunks, as
hf_xet sends them to a hub by itself: of these only the packed blocks are kept, and of the file its SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import yaml
from aiohttp import web

from .app_thread import HOST, AppThread

TOKEN: Final = "hf" + "_" + "loopback0" * 4
BODY_LIMIT: Final = 1 << 28


@dataclass(frozen=True)
class Commit:
    """One commit: where, what, and whether it is a pull request."""

    repository: str
    summary: str
    pull_request: bool
    files: dict[str, bytes]


@dataclass
class Kept:
    """What came in."""

    created: list[dict[str, Any]] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)
    blocks: dict[str, int] = field(default_factory=dict)
    """Bytes of the blocks of chunks, by name."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files that came in chunks, by path."""
    strangers: int = 0
    """Requests without the token."""


class UploadHub:
    """Serves between `__enter__` and `__exit__`; repositories are named `datasets/OWNER/NAME` or `models/OWNER/NAME`."""

    def __init__(
        self,
        *,
        large: tuple[str, ...] = ("predictions.jsonl",),
        existing: tuple[str, ...] = (),
        xet: Literal["", "open", "closed", "broken"] = "",
    ) -> None:
        """`xet`: not used; takes chunks; refuses to give a token for them; its store answers 500."""
        self._xet = xet
        self.kept = Kept()
        self._large = large
        self._known = set(existing)
        app = web.Application(middlewares=[self._guard], client_max_size=BODY_LIMIT)
        app.router.add_post("/api/repos/create", self._create)
        app.router.add_post("/api/validate-yaml", self._validate)
        app.router.add_post("/api/{kind}/{owner}/{name}/preupload/{revision}", self._preupload)
        app.router.add_post("/api/{kind}/{owner}/{name}/commit/{revision}", self._commit)
        app.router.add_post("/datasets/{owner}/{name}.git/info/lfs/objects/batch", self._batch)
        app.router.add_put("/storage/{oid}", self._store)
        app.router.add_get("/api/{kind}/{owner}/{name}/xet-write-token/{revision}", self._xet_token)
        app.router.add_route("*", "/storage/cas/{rest:.*}", self._chunks)
        self._thread = AppThread(app)
        self._port = 0

    def __enter__(self) -> Self:
        self._port = self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.stop()

    @property
    def endpoint(self) -> str:
        """Value for HF_ENDPOINT."""
        return f"http://{HOST}:{self._port}"

    def environment(self, token: str = TOKEN) -> dict[str, str]:
        """Variables for a command that shall meet this hub."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_TOKEN": token,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "0" if self._xet else "1",
            "HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1",
            "HF_XET_TELEMETRY_ENABLED": "0",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        storage = request.path.startswith("/storage/")  # signed addresses carry no token
        if not storage and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.kept.strangers += 1
            return web.json_response({"error": "Invalid username or password."}, status=401)
        response: web.StreamResponse = await handler(request)
        return response

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        repository = f"{asked.get('type', 'model')}s/{asked['organization']}/{asked['name']}"
        if repository in self._known:
            told = {"error": "You already created this repo", "url": f"{self.endpoint}/{repository}"}
            return web.json_response(told, status=409)
        self._known.add(repository)
        self.kept.created.append(asked)
        return web.json_response(
            {"url": f"{self.endpoint}/{repository}", "name": repository.partition("/")[2]}
        )

    async def _validate(self, request: web.Request) -> web.Response:
        content = (await request.json())["content"]
        head = yaml.safe_load(content.split("---\n")[1])
        assert isinstance(head, dict)
        return web.json_response({"errors": [], "warnings": []})

    async def _preupload(self, request: web.Request) -> web.Response:
        if self._repository(request) not in self._known:
            return web.json_response(
                {"error": "Repository not found"}, status=404, headers={"X-Error-Code": "RepoNotFound"}
            )
        asked = (await request.json())["files"]
        files = [
            {
                "path": one["path"],
                "uploadMode": "lfs" if one["path"].endswith(self._large) else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for one in asked
        ]
        return web.json_response({"files": files})

    async def _batch(self, request: web.Request) -> web.Response:
        asked = (await request.json())["objects"]
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.endpoint}/storage/{one['oid']}", "header": {}}}}
            for one in asked
        ]
        return web.json_response({"transfer": "basic", "objects": objects})

    async def _store(self, request: web.Request) -> web.Response:
        content = await request.read()
        oid = request.match_info["oid"]
        if hashlib.sha256(content).hexdigest() != oid:
            return web.Response(status=400)
        self.kept.stored[oid] = content
        return web.Response()

    async def _xet_token(self, request: web.Request) -> web.Response:
        if self._xet == "closed":
            return web.json_response({"error": "no"}, status=403)
        place = {"casUrl": f"{self.endpoint}/storage/cas", "accessToken": "chunks", "exp": 1 << 32}
        return web.json_response(place)

    async def _chunks(self, request: web.Request) -> web.Response:
        """The first version of the store's protocol; what it does not know, clients ask otherwise."""
        if self._xet == "broken":
            return web.Response(status=500)
        path = request.match_info["rest"]
        if request.method != "POST" or not path.startswith(("v1/xorbs/", "v1/shards", "shards")):
            return web.Response(status=404)
        if "xorbs" in path:
            self.kept.blocks[path.rpartition("/")[2]] = len(await request.read())
            return web.json_response({"was_inserted": True})
        return web.json_response({"result": 1})

    async def _commit(self, request: web.Request) -> web.Response:
        lines = [json.loads(line) for line in (await request.read()).splitlines()]
        files: dict[str, bytes] = {}
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if self._xet:
                    self.kept.hashes[value["path"]] = value["oid"]
                else:
                    files[value["path"]] = self.kept.stored[value["oid"]]
        wanted = request.query.get("create_pr") in ("1", "true", "True")
        repository = self._repository(request)
        self.kept.commits.append(Commit(repository, lines[0]["value"]["summary"], wanted, files))
        number = len(self.kept.commits)
        oid = f"{number:040x}"
        page = f"{self.endpoint}/{repository}"
        answer: dict[str, Any] = {"success": True, "commitOid": oid, "commitUrl": f"{page}/commit/{oid}"}
        if wanted:
            answer["pullRequestUrl"] = f"{page}/discussions/{number}"
        return web.json_response(answer)

    def _repository(self, request: web.Request) -> str:
        match = request.match_info
        return f"{match['kind']}/{match['owner']}/{match['name']}"
