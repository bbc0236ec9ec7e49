"""Secrets: known forms are found anywhere and masked, placeholders and the data's own content are not; the machine's keys,
home and host are found as they are; what stands in a sample's own row is none."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.config import RunConfig
from agentworldbench.plan import Samples, open_samples
from agentworldbench.resources import mini_folder
from agentworldbench.submission.secret_scan import SHAPES, machine_values, masked, scan, secrets_in

LETTERS = string.ascii_letters + string.digits
BASE32 = string.ascii_uppercase + "234567"


def drawn(seed: int, count: int, letters: str = LETTERS) -> str:
    return "".join(random.Random(seed).choices(letters, k=count))


def _token(seed: int) -> str:
    parts = [
        base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        for text in ('{"alg":"HS256"}', '{"sub":"u"}')
    ]
    return ".".join([*parts, drawn(seed, 43)])


# Put together here, so that this file holds nothing of the form.
FORMS: dict[str, Callable[[int], str]] = {
    "OpenAI": lambda seed: "sk" + "-proj-" + drawn(seed, 48),
    "OpenAI, old": lambda seed: "sk" + "-" + drawn(seed, 48),
    "Anthropic": lambda seed: "sk" + "-ant-api03-" + drawn(seed, 93),
    "OpenRouter": lambda seed: "sk" + "-or-v1-" + drawn(seed, 64, "0123456789abcdef"),
    "Hugging Face": lambda seed: "hf" + "_" + drawn(seed, 34),
    "GitHub": lambda seed: "gh" + "p_" + drawn(seed, 36),
    "GitHub, fine": lambda seed: "github" + "_pat_" + drawn(seed, 22) + "_" + drawn(seed + 1, 59),
    "GitLab": lambda seed: "glpat" + "-" + drawn(seed, 20),
    "Google": lambda seed: "AI" + "za" + drawn(seed, 35),
    "AWS": lambda seed: "AK" + "IA" + drawn(seed, 16, BASE32),
    "Slack": lambda seed: "xox" + "b-" + drawn(seed, 12, string.digits) + "-" + drawn(seed, 24),
    "Stripe": lambda seed: "sk" + "_live_" + drawn(seed, 24),
    "Groq": lambda seed: "gsk" + "_" + drawn(seed, 52),
    "xAI": lambda seed: "xai" + "-" + drawn(seed, 80),
    "Perplexity": lambda seed: "pplx" + "-" + drawn(seed, 48),
    "NVIDIA": lambda seed: "nvapi" + "-" + drawn(seed, 64),
    "Replicate": lambda seed: "r8" + "_" + drawn(seed, 37),
    "npm": lambda seed: "npm" + "_" + drawn(seed, 36),
    "PyPI": lambda seed: "pypi" + "-" + drawn(seed, 150),
    "e-mail": lambda seed: f"{drawn(seed, 9, BASE32)}.{drawn(seed + 1, 5, BASE32)}@" + f"dept.{drawn(seed, 6, BASE32)}.edu",
    "Google access": lambda seed: "ya" + "29." + drawn(seed, 60),
    "web token": _token,
    "private key": lambda seed: "-----BEGIN RSA PRIVATE" + " KEY-----\n" + drawn(seed, 64) + "\n",
}  # fmt: skip
PLACEHOLDERS = (
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-your-api-key-goes-right-here-now", "sk-abcdefghijklmnopqrstuvwxyz012345",
    "AKIAIOSFODNN7EXAMPLE", "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ghp_123456789012345678901234567890123456",
    "https://user:password@localhost/db", "postgres://admin:xxxxxxxx@db:5432/app", "https://h/?api_key=YOUR_API_KEY_HERE_0",
    "Authorization: Bearer <token>", "Authorization: Bearer eyexampletokenexample", "sk-learn and task-list", "sk-folding-cube-animation-wrapper-big", "risk-averse-people-who-wait",
)  # fmt: skip


@pytest.fixture(scope="module")
def samples() -> Samples:
    return open_samples(RunConfig(data="mini"))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=12)
@given(st.integers(0, 10**6), st.text(max_size=30), st.text(max_size=30))
def test_keys_of_known_forms_are_found(form: str, seed: int, before: str, after: str) -> None:
    key = FORMS[form](seed)
    found = [secret for _, secret in secrets_in(f'{before} "{key}" {after}')]
    assert any(key.strip() in secret or secret in key for secret in found), key


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_placeholders_are_none(text: str) -> None:
    assert list(secrets_in(f"use {text} for this")) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("postgres://admin:{}@db.example:5432/app", "password in a URL"),
        ("https://h.example/v1?a=b&api_key={}", "key in a URL"),
        ('"Authorization": "Bearer {}"', "authorization header"),
    ],
)
def test_keys_by_their_place(text: str, kind: str) -> None:
    secret = drawn(7, 24)
    assert list(secrets_in(text.format(secret))) == [(kind, secret)]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("write to john.doe@gmail.com.", "john.doe@gmail.com"),
        ("<mary+lists@corp.co.uk>", "mary+lists@corp.co.uk"),
        ("bob@uni-jena.de: hello", "bob@uni-jena.de"),
        ('{"to":"a_b@mail.x1.io"}', "a_b@mail.x1.io"),
    ],
)
def test_addresses_of_people_are_found(text: str, address: str) -> None:
    assert list(secrets_in(text)) == [("e-mail", address)]


@pytest.mark.parametrize(
    "text",
    [
        "a@example.com", "me@mail.example.org", "you@your-domain.com", "git@github.com:x/y", "noreply@github.com", "lodash@4.17.21.tgz",
        "getty@tty1.service", "root@web-1:~#", "root@web.shop.com:~#", "backup@nas.shop.com:/srv", "user@build.internal", "x@y.py",
        "https://u@h.com/x", "@types/node@18.2.js", "10@1.2.3.4",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_address(text: str) -> None:
    assert list(secrets_in(text)) == []


def test_every_shape_has_a_form_here() -> None:
    found = {kind for make in FORMS.values() for kind, _ in secrets_in(f" {make(3)} ")}
    by_place = {"password in a URL", "key in a URL", "authorization header"}
    assert found == {shape.kind for shape in SHAPES} - by_place


def test_no_row_of_the_bundled_data_raises_an_alarm(samples: Samples) -> None:
    for file in mini_folder().glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").split("\n"):
            texts = json.loads(line) if line else {}
            whole = "\n".join([str(value) for value in texts.values()])
            assert list(secrets_in(whole)) == [], file.name


@given(st.text(min_size=8, max_size=80))
def test_a_mask_shows_six_characters_at_most(secret: str) -> None:
    shown = masked(secret).rpartition(" (")[0]
    assert len(shown) <= 7


MACHINE = {
    "OPENAI_API_KEY": "plain0word1of2mine", "AWB_API_KEY": "EMPTY", "MY_TOKEN": "not-needed", "EDITOR": "vim9vim9vim9",
    "DB_PASSWORD": "aaaaaaaaaaaa1",
}  # fmt: skip


def test_what_the_machine_must_not_tell() -> None:
    found = machine_values(
        MACHINE, Path("/home/alice"), "alices-laptop", ["gpu-7.lan", "127.0.0.1", "localhost"]
    )
    assert [(one.kind, one.value) for one in found] == [
        ("key of the environment", "plain0word1of2mine"),
        ("home directory", "/home/alice"),
        ("host name", "alices-laptop"),
        ("private address", "gpu-7.lan"),
    ]
    text = "key=plain0word1of2mine; cd /home/alice/x; alices-laptop$ curl gpu-7.lan:80 localhost"
    assert [kind for kind, _ in secrets_in(text, found)] == [one.kind for one in found]
    assert list(secrets_in("xplain0word1of2mine /home/alicette my-alices-laptop gpu-7.landing", found)) == []
    assert (
        machine_values({}, Path("/root"), "host") == machine_values({}, Path("/home/ubuntu"), "ubuntu") == []
    )


def test_findings_say_where_and_spare_the_data(samples: Samples, tmp_path: Path) -> None:
    """One finding a value, with file, line and field; what stands in the sample's own row is left out."""
    ref = next(ref for ref in samples.refs if ref.domain == "terminal")
    own = next(word for word in samples.dataset.load(ref).responses[-1].split() if len(word) > 8)
    key = FORMS["Hugging Face"](1)
    exact = machine_values({"A_KEY": key[::-1], "B_KEY": own + "1"}, Path("/"), "h")
    own_word = machine_values({}, Path("/"), own)
    records: list[dict[str, Any]] = [
        {"sample_id": ref.id, "text": f"ok {own}"},
        {"sample_id": ref.id, "attempts": [{"message": f"a {key} b"}], "text": "\u0041"},
        {"sample_id": "mcp/none/1", "text": f"{own} {key}", key: 1},
    ]
    lines = [json.dumps(record).replace("hf_", "h\\u0066_") for record in records]
    (tmp_path / "predictions.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "run.json").write_text(json.dumps({"a": 1, "b": {"c": key}}, indent=2))
    (tmp_path / "NOTICE").write_text(f"one\ntwo {key}\n")
    names = ("predictions.jsonl", "run.json", "NOTICE", "none.json")
    host, token = sorted(
        scan(tmp_path, names, samples, [*exact, *own_word]), key=lambda one: one.kind, reverse=True
    )
    assert (host.kind, host.count, [str(place) for place in host.places]) == (
        "host name", 1, ["predictions.jsonl:3 text"],
    )  # fmt: skip
    assert (token.kind, token.count) == ("Hugging Face token", 5)
    assert [str(place) for place in token.places] == [
        "predictions.jsonl:2 attempts[0].message",
        "predictions.jsonl:3 text",
        "predictions.jsonl:3",
    ]
    assert key not in repr(token)
    again = scan(tmp_path, ["run.json", "NOTICE"], samples, [])
    assert [one.id for one in again] == [token.id]
    assert [str(place) for place in again[0].places] == ["run.json:4 b.c", "NOTICE:2"]
