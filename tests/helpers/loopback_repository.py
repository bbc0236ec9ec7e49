"""A look-alike of the repository with the official prompt files, in our own words, and a server for it.

`look_alike()` makes the files and the manifest that describes them; `write_checkout` and `write_flat`
lay them out in the two ways that a folder of prompts may have. `LoopbackRepository` serves files as a
host of raw files does; `file_server.py` tells what can go wrong there. The Python file runs into an
exception and leaves a trace when somebody imports or runs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from agentworldbench.official_files import OfficialFile, OfficialManifest

from .file_server import FileServer

COMMIT: Final = "00112233445566778899aabbccddeeff00112233"
CODE: Final = "eval/lwm_eval_utils/task_configs.py"
FLAT_TEMPLATE: Final = "judge_user_prompt.txt"
DOMAINS: Final = ("mcp", "search", "terminal", "swe", "android", "web", "os")
TRACE: Final = "somebody_ran_it"
TEMPLATE: Final = (
    "{context}\n\n{world_model_input}\n\n{predicted_observation}\n\n{ground_truth}\n\n"
    'Say how near the first is to the second, as {{"scores": {{}}}}. Größe zählt nicht.\n'
)


@dataclass(frozen=True)
class LookAlike:
    """The files by their path in the repository, the template's text, and the manifest of both."""

    files: Mapping[str, bytes]
    template: str
    manifest: OfficialManifest


def look_alike(template: str = TEMPLATE, source: str | None = None) -> LookAlike:
    """Seven system prompts and the Python file; `source` is that file's text, else one with traps."""
    files = {f"prompts/{domain}/judge_system_prompt.txt": _system(domain) for domain in DOMAINS}
    files[CODE] = (hostile(template) if source is None else source).encode()

    def described(path: str, flat: str, data: bytes) -> OfficialFile:
        return OfficialFile(path, flat, len(data), hashlib.sha256(data).hexdigest())

    systems = {
        domain: described(path, path.removeprefix("prompts/"), files[path])
        for domain, path in zip(DOMAINS, files, strict=False)
    }
    manifest = OfficialManifest(
        repository="https://github.com/example/look-alike",
        commit=COMMIT,
        systems=systems,
        code=described(CODE, "task_configs.py", files[CODE]),
        constant="JUDGE_USER_PROMPT",
        template=described(FLAT_TEMPLATE, FLAT_TEMPLATE, template.encode()),
    )
    return LookAlike(files, template, manifest)


def hostile(template: str) -> str:
    """A module that may be read but not run."""
    return (
        f'"""Look-alike."""\nfrom pathlib import Path\n\nPath({TRACE!r}).write_text("ran")\n'
        f"JUDGE_USER_PROMPT = 'an earlier one'\nJUDGE_USER_PROMPT = {template!r}\n"
        "OTHER_JUDGE_USER_PROMPT = JUDGE_USER_PROMPT.upper()\nraise SystemExit('this file was run')\n"
    )


def _system(domain: str) -> bytes:
    # Odd ends and separators: the texts are used as they stand, nothing is stripped or translated.
    return (f" \nJudge what the {domain} world shows.\r\nFünf Noten\u2028je 1 bis 5.\n\n" * 40).encode()


def write_checkout(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The files as a checkout has them."""
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def write_flat(folder: Path, made: LookAlike) -> Path:
    """The files as a folder of prompts has them, the template as a text of its own."""
    systems = {path: data for path, data in made.files.items() if path != CODE}
    write_checkout(folder, {path.removeprefix("prompts/"): data for path, data in systems.items()})
    (folder / FLAT_TEMPLATE).write_bytes(made.template.encode())
    return folder


class LoopbackRepository(FileServer):
    """Serves `files` below `base`; `files` and `script` may be changed while it runs."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(prefix="/mirror/")
        self.files = dict(files)
        self.app.router.add_get("/mirror/{path:.+}", self._serve)

    @property
    def base(self) -> str:
        """What stands before the files' paths. `origin` is also a proxy for plain HTTP, for any host."""
        return f"{self.origin}/mirror"

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if path not in self.files:
            return web.Response(status=404)
        return await self.send(request, path, self.files[path], {})
