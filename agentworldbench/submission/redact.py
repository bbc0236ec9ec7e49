"""What the harness itself has written of a machine, made fit to be public: addresses of endpoints, paths.

In: strings of `run.json` and of the harness' own fields of records. Out: the same with private addresses replaced by
`endpoint-N.invalid` and absolute paths by their last part, counted by kind. Texts of models and judges never come
here: changing one would change what was judged. Addresses of hosted services that everybody uses stay.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.scoring.judge import digest_of

PUBLIC_HOSTS: Final = frozenset(
    """
    aihubmix.com anthropic.com api.cerebras.ai bigmodel.cn cohere.ai cohere.com dashscope.aliyuncs.com
    dashscope-intl.aliyuncs.com deepinfra.com deepseek.com fireworks.ai github.com google.com googleapis.com groq.com
    huggingface.co hyperbolic.xyz litellm.ai minimax.io mistral.ai moonshot.ai moonshot.cn novita.ai openai.com
    openrouter.ai perplexity.ai replicate.com sambanova.ai siliconflow.cn siliconflow.com together.ai together.xyz x.ai
    z.ai
    """.split()  # noqa: SIM905 - a table of words reads better than forty quoted lines
)
"""Hosts, with all below them, whose addresses tell nothing of who asks. Those that carry a customer's name (Azure, dedicated
endpoints) are not among them."""
REPLACED: Final = ".invalid"
"""Ends every name that stands for a private one; no host can have it [RFC 2606]."""
IDENTIFYING: Final = frozenset({"sample_id"})
"""Fields that name things of the data and may look like anything."""
_ROOTS: Final = (
    "home", "Users", "root", "mnt", "data", "datasets", "srv", "opt", "tmp", "var", "scratch", "work", "workspace",
    "nfs", "lustre", "gpfs", "media", "private", "etc", "proj", "projects", "storage", "shared", "local", "gpu", "raid",
    "content", "vol", "volumes", "dev", "run", "usr",
)  # fmt: skip
_PATH: Final = re.compile(
    rf"(?<![\w.])/(?:{'|'.join(_ROOTS)})(?=[/\s\"'<>|:;,()\[\]{{}}]|$)(?:/[^\s\"'<>|:;,()\[\]{{}}]*)?"
)
_WINDOWS: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]:\\[^\s\"'<>|:;,()]+")
_URL: Final = re.compile(
    r"(?P<scheme>https?|wss?)://(?P<user>[^\s/\"'<>@]+@)?(?P<place>\[[0-9A-Fa-f:.%]+\](?::\d+)?|[^\s/\"'<>()\[\]{}\\@]+)"
    r"(?P<path>/[^\s\"'<>)\]}]*)?"
)
_PRIVATE_ENDS: Final = (
    ".local",
    ".internal",
    ".lan",
    ".corp",
    ".home",
    ".localdomain",
    ".intranet",
    ".invalid",
)


class Redactor:
    """Replaces in strings and JSON-like values; `counts` says how often, by kind."""

    def __init__(self, run: RunRecord) -> None:
        """Endpoints are numbered in the order of the sessions, so that one has one number in all records."""
        self.counts: Counter[str] = Counter()
        self._digests: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        for url in _addresses(run):
            host = _host(url)
            if host and not is_public(host) and not host.endswith(REPLACED):
                self._numbers.setdefault(host, len(self._numbers) + 1)
        # Where a host stands without a scheme, as in "cannot connect to host gpu-7:8000". Longest first.
        names = sorted(map(re.escape, self._numbers), key=len, reverse=True)
        self._bare = (
            re.compile(rf"(?<![\w.@/-])(?P<host>{'|'.join(names)})(?::\d+)?(?![\w-])", re.I)
            if names
            else None
        )

    @property
    def private_hosts(self) -> tuple[str, ...]:
        """The hosts that were replaced; a name may stand in a text of a model too, which is then a finding."""
        return tuple(self._numbers)

    def text(self, text: str) -> str:
        """`text` without private addresses and absolute paths; the digest of a judge that was changed by that is its
        new one. What is public already stays as it is."""
        if text in self._digests:
            return self._digests[text]
        if "/" not in text and "\\" not in text and self._bare is None:
            return text
        # Until nothing is left: what one replacement joins may be a path again. Each makes the text shorter or public.
        while (replaced := self._once(text)) != text:
            text = replaced
        return text

    def _once(self, text: str) -> str:
        text = _URL.sub(self._address, text)
        if self._bare is not None:
            text = self._bare.sub(self._bare_host, text)
        return _WINDOWS.sub(self._path, _PATH.sub(self._path, text))

    def value(self, value: Any, but: Iterable[str] = ()) -> Any:
        """A JSON-like value with every string replaced, keys too; fields named in `but` are left as they are."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            kept = frozenset(but)
            return {
                self.text(name): one if name in kept else self.value(one, kept) for name, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(one, but) for one in value]
        return value

    def run(self, run: RunRecord) -> RunRecord:
        """`run.json` as it may be public; a data folder and task folders are told by their names. A judge that is named
        by a path gets the digest of its new name, here and wherever its digest stands."""
        fields = self.value(run.model_dump(mode="json"), IDENTIFYING)
        for old, new in zip(run.judges, map(JudgeRecord.model_validate, fields["judges"]), strict=True):
            if digest_of(new) != digest_of(old):
                self._digests[old.digest] = digest_of(new)
        if self._digests:
            fields = self.value(fields, IDENTIFYING)
        selection = fields["selection"]
        selection["data"] = self._local(selection["data"])
        selection["tasks"] = [self._local(name) for name in selection["tasks"]]
        return RunRecord.model_validate(fields, strict=False)

    def _local(self, word: str) -> str:
        path = PurePosixPath(word.replace("\\", "/"))
        if not path.is_absolute() and not word.startswith(("~", "..")):
            return word
        self.counts["path"] += 1
        return path.name

    def _address(self, found: re.Match[str]) -> str:
        user, place, path = found["user"], found["place"], found["path"] or ""
        host = _host(f"{found['scheme']}://{place}")
        if (
            is_public(host)
            or host.endswith(".invalid")
            or not (host in self._numbers or _looks_private(host))
        ):
            self.counts["address"] += bool(user)
            return f"{found['scheme']}://{place}{path}"
        self.counts["address"] += 1
        return f"{found['scheme']}://{self._name(host)}{path}"

    def _bare_host(self, found: re.Match[str]) -> str:
        self.counts["address"] += 1
        return self._name(found["host"].lower())

    def _name(self, host: str) -> str:
        number = self._numbers.get(host)
        return f"private{REPLACED}" if number is None else f"endpoint-{number}{REPLACED}"

    def _path(self, found: re.Match[str]) -> str:
        self.counts["path"] += 1
        return re.split(r"[/\\]", found[0].rstrip("/\\"))[-1]


def is_public(host: str) -> bool:
    """Whether a host is a hosted service that everybody uses."""
    return any(host == known or host.endswith("." + known) for known in PUBLIC_HOSTS)


def _looks_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_ENDS)


def _addresses(run: RunRecord) -> Iterable[str]:
    for session in run.sessions:
        yield from filter(None, [session.model_url, *(url for _, url in sorted(session.judge_urls.items()))])


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
