"""Looks for secrets in the files that would become public.

In: the folder of a bundle, the data, and what of this machine must not be told (`machine_values`: keys of the environment,
home directory, host name). Out: `Finding`s, one for each kind and value, masked, with the places where it stands. Strings
are read out of JSON, so an escaped character hides nothing. What stands in a sample's own row is no secret: models repeat
what they have read. E-mail addresses are looked for too, but for those of example domains: an address that no row
holds may be a person's that a model remembers. People's names are not looked for: models invent them by the hundred.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from agentworldbench.plan import Samples
from agentworldbench.texts import count_text

SHOWN: Final = 3
"""Places of one finding that are kept; all are counted."""


@dataclass(frozen=True)
class Shape:
    """A kind of secret: a literal that every one of them has, the pattern (its last group is the secret), and how
    random it must be (bits a character) to be no placeholder."""

    kind: str
    needle: str
    pattern: re.Pattern[str]
    entropy: float = 3.0


def _shape(kind: str, needle: str, pattern: str, entropy: float = 3.0) -> Shape:
    return Shape(kind, needle, re.compile(pattern), entropy)


EMAIL: Final = "e-mail"
_ENDS: Final = (
    "com|org|net|edu|gov|mil|int|info|biz|name|io|ai|dev|app|cloud|online|site|store|tech|xyz|me|email|"
    "(?!cc|cs|go|gz|hs|js|md|ml|pl|ps|py|rb|rs|sh|so|tf|ts|vb|xz)[a-z]{2}"
)
"""Of top-level domains the usual ones and those of countries, but for those that are endings of files as well."""
SHAPES: Final = (
    _shape("API key", "sk-", r"(?<![\w-])(?=[\w-]*\d[\w-]*\d)(sk-(?:[a-z]+-|[a-z]+\d*-v\d+-)*[A-Za-z0-9_-]{20,})"),
    _shape("Hugging Face token", "hf_", r"(?<!\w)(hf_[A-Za-z0-9]{30,})"),
    *(_shape("GitHub token", f"gh{kind}_", rf"(?<!\w)(gh{kind}_[A-Za-z0-9]{{36,}})") for kind in "pousr"),
    _shape("GitHub token", "github_pat_", r"(?<!\w)(github_pat_[A-Za-z0-9_]{40,})"),
    _shape("GitLab token", "glpat-", r"(?<!\w)(glpat-[A-Za-z0-9_-]{20,})"),
    _shape("Google API key", "AIza", r"(?<!\w)(AIza[0-9A-Za-z_-]{35})(?![\w-])"),
    _shape("Google access token", "ya29.", r"(?<!\w)(ya29\.[0-9A-Za-z_-]{30,})"),
    _shape("AWS access key", "AKIA", r"(?<!\w)(AKIA[A-Z2-7]{16})(?!\w)", 2.8),
    _shape("AWS access key", "ASIA", r"(?<!\w)(ASIA[A-Z2-7]{16})(?!\w)", 2.8),
    _shape("Slack token", "xox", r"(?<!\w)(xox[abeoprs]-[A-Za-z0-9-]{20,})"),
    _shape("Stripe key", "_live_", r"(?<!\w)([rs]k_live_[A-Za-z0-9]{20,})"),
    _shape("Groq key", "gsk_", r"(?<!\w)(gsk_[A-Za-z0-9]{40,})"),
    _shape("xAI key", "xai-", r"(?<!\w)(xai-[A-Za-z0-9]{40,})"),
    _shape("Perplexity key", "pplx-", r"(?<!\w)(pplx-[A-Za-z0-9]{40,})"),
    _shape("NVIDIA key", "nvapi-", r"(?<!\w)(nvapi-[A-Za-z0-9_-]{40,})"),
    _shape("Replicate token", "r8_", r"(?<!\w)(r8_[A-Za-z0-9]{30,})"),
    _shape("npm token", "npm_", r"(?<!\w)(npm_[A-Za-z0-9]{36})(?!\w)"),
    _shape("PyPI token", "pypi-", r"(?<!\w)(pypi-[A-Za-z0-9_-]{50,})"),
    _shape("JSON web token", "eyJ", r"(?<!\w)(eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,})"),
    _shape("private key", "PRIVATE KEY-----", r"(-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{60,})"),
    _shape("authorization header", "uthorization", r"uthorization[\"']?\s*[:=]\s*[\"']?(?:Bearer|Basic|token)\s+([\w.~+/=-]{16,})"),
    _shape("password in a URL", "://", r"://[^\s/:@\"'<>]+:([^\s/@\"'<>]{8,})@[\w.-]+", 2.75),
    _shape(EMAIL, "@", rf"(?i)(?<![\w.+/:@-])(?!git@|no-?reply@)([a-z0-9][\w.+-]{{0,63}}@(?:[a-z0-9-]{{1,63}}\.){{0,4}}(?=[a-z0-9-]*[a-z])[a-z0-9-]{{1,63}}\.(?:{_ENDS}))(?![\w@-]|\.\w|:[~/\w])", 0.0),
    _shape("key in a URL", "=", r"[?&](?:api[_-]?key|access_token|auth_token|client_secret)=([\w.%-]{16,})"),
)  # fmt: skip
"""Forms that providers give their keys, as their documentation shows them."""
_PLACEHOLDER: Final = re.compile(
    r"example|your|dummy|placeholder|redacted|changeme|password|x{4}|\*{3}|\.{3}|1234567", re.I
)
_SECRET_NAME: Final = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_ID|_BASE64)?$", re.IGNORECASE
)
_COMMON: Final = frozenset(
    ["user", "users", "ubuntu", "debian", "admin", "root", "runner", "node", "app", "jovyan", "localhost", "home",
     "vagrant", "docker", "coder", "dev"]
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where something stands: file, line (from 1) and field."""

    file: str
    line: int
    field: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.field}".rstrip()


@dataclass
class Finding:
    """One value that must not become public unless it is allowed by its `id`. `secret` is for masking, never shown."""

    id: str
    kind: str
    secret: str = field(repr=False)
    masked: str
    count: int = 0
    places: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Exact:
    """A value of this machine, looked for as it is; `pattern` finds it where it is no part of a longer word."""

    kind: str
    value: str
    pattern: re.Pattern[str]


def machine_values(
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    host: str | None = None,
    private_hosts: Iterable[str] = (),
) -> list[Exact]:
    """What of this machine may not be told: values of variables that are named like keys, the home directory and the
    host name where they tell who it is, and the hosts of private endpoints."""
    found = [
        ("key of the environment", value)
        for name, value in sorted(environ.items())
        if _SECRET_NAME.search(name) and _is_secret(value)
    ]
    try:
        home = home or Path.home()
    except RuntimeError:  # no home is known
        home = Path("/")
    if len(home.parts) > 2 and home.name.lower() not in _COMMON:
        found.append(("home directory", str(home)))
    host = host or socket.gethostname()
    if len(host) > 5 and host.lower() not in _COMMON:
        found.append(("host name", host))
    for name in private_hosts:
        if len(name) > 3 and name not in _COMMON and not name.startswith("127."):
            found.append(("private address", name))
    return [Exact(kind, value, _whole(value)) for kind, value in found]


def _whole(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w-])")


def _is_secret(value: str) -> bool:
    """Whether a variable's value is one: not a word that stands for none, as servers without a key get."""
    digits = any(char.isdigit() for char in value)
    return len(value) >= 8 and entropy(value) >= 2.5 and (digits or len(value) >= 20)


def entropy(text: str) -> float:
    """Bits a character, by the frequencies of the text's own characters [Shannon 1948]."""
    counts = Counter(text).values()
    return -math.fsum(count / len(text) * math.log2(count / len(text)) for count in counts)


def _is_placeholder(secret: str, least: float) -> bool:
    """Whether something of a key's form is an example: words, repetition, or the alphabet."""
    steps = [ord(after) - ord(before) for before, after in pairwise(secret)]
    in_order = sum(abs(step) <= 1 for step in steps)
    return bool(_PLACEHOLDER.search(secret)) or entropy(secret) < least or 2 * in_order > len(steps)


def secrets_in(text: str, machine: Iterable[Exact] = ()) -> Iterator[tuple[str, str]]:
    """(kind, secret) of everything in a text that looks like one."""
    for exact in machine:
        if exact.value in text and exact.pattern.search(text):
            yield exact.kind, exact.value
    for shape in SHAPES:
        if shape.needle in text:
            for found in shape.pattern.finditer(text):
                if not _is_placeholder(found[1], shape.entropy):
                    yield shape.kind, found[1]


def scan(
    folder: Path, names: Iterable[str], samples: Samples | None, machine: Iterable[Exact]
) -> list[Finding]:
    """Findings in the files `names` of `folder`, in the order in which they were met; without `samples` also what stands
    in a sample's own row."""
    refs = {} if samples is None else {ref.id: ref for ref in samples.refs}
    known = tuple(machine)
    found: dict[str, Finding] = {}
    for name in names:
        for line, record, text in _texts(folder / name):
            own = ""
            for path, string in _strings("", record):
                for kind, secret in secrets_in(string, known):
                    ref = refs.get(record.get("sample_id", "")) if isinstance(record, dict) else None
                    own = own or (_row(samples, ref) if samples and ref else "")
                    if secret not in own:
                        place = Place(name, line or _line_of(text, secret), path)
                        _note(found, kind, secret, place)
    return list(found.values())


def _note(found: dict[str, Finding], kind: str, secret: str, place: Place) -> None:
    key = hashlib.sha256(f"{kind}\0{secret}".encode()).hexdigest()[:10]
    one = found.setdefault(key, Finding(key, kind, secret, masked(secret)))
    one.count += 1
    if len(one.places) < SHOWN:
        one.places.append(place)


def masked(secret: str) -> str:
    """Enough of a secret to know it again, and not enough to use it."""
    shown = " ".join(secret.split())
    return f"{shown[:4]}…{shown[-2:]} ({count_text(len(secret), 'character')})"


def _row(samples: Samples, ref: Any) -> str:
    sample = samples.dataset.load(ref)
    return "\n".join((sample.system, *sample.prompts, *sample.responses, sample.action))


def _texts(path: Path) -> Iterator[tuple[int, Any, str]]:
    """(line, value, text) of a file: each line of a journal, else the whole, whose lines are looked up (line 0)."""
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                yield number, json.loads(line), line
    elif path.exists():
        text = path.read_text(encoding="utf-8")
        yield 0, json.loads(text) if path.suffix == ".json" else text, text


def _strings(where: str, value: Any) -> Iterator[tuple[str, str]]:
    """(field, text) of every string of a JSON value, keys too."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield where, name
            yield from _strings(f"{where}.{name}" if where else name, one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _strings(f"{where}[{number}]", one)


def _line_of(text: str, secret: str) -> int:
    escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
    place = max(text.find(escaped), 0)
    return text.count("\n", 0, place) + 1
