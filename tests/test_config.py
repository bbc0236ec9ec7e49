"""Tests of `config.py` and of the flags made from it: every field, three ways to set it.

`FIELDS` names a value for each field, as words on the command line and as YAML; a field that is
missing there fails the first test. Flags are read by the real command with `--dry-run` replaced by
a probe, so Typer's part is covered too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.cli import run as run_commands
from agentworldbench.config import RunConfig, make_config
from agentworldbench.errors import ConfigError
from tests.helpers.awb_command import Done, HereAwb

SECRET = "sk-verysecret0123456789"
FIELDS: dict[str, tuple[list[str], Any, Any]] = {
    # field: (words, the same in YAML, value in the configuration)
    "model": (["--model", "baseline/empty"], "baseline/empty", "baseline/empty"),
    "judge": (["--judge", "a/b", "--judge", "c/d,e"], ["a/b", "c/d,e"], ("a/b", "c/d,e")),
    "data": (["--data", "hf:a/b@c"], "hf:a/b@c", "hf:a/b@c"),
    "tasks": (["--tasks", "swe, os", "-t", "web"], "swe, os, web", ("swe", "os", "web")),
    "limit": (["--limit", "2-5"], "2-5", "2-5"),
    "output": (["--output", "runs/x"], "runs/x", Path("runs/x")),
    "base_url": (["--base-url", "http://127.0.0.1:1/v1"], "http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
    "temperature": (["--temperature", "0"], 0, 0.0),
    "top_p": (["--top-p", "0.5"], 0.5, 0.5),
    "max_tokens": (["--max-tokens", "7"], 7, 7),
    "model_args": (["-M", "dtype=float32,max_model_len=9"], {"dtype": "float32", "max_model_len": 9}, {"dtype": "float32", "max_model_len": 9}),
    "batch_size": (["--batch_size", "4"], 4, "4"),
    "thinking": (["--thinking", "off"], False, "off"),
    "reasoning_effort": (["--reasoning-effort", "high"], "high", "high"),
    "context_policy": (["--context-policy", "drop-oldest"], "drop-oldest", "drop-oldest"),
    "max_context": (["--max-context", "9"], 9, 9),
    "min_output": (["--min-output", "3"], 3, 3),
    "seed": (["--seed", "0"], 0, 0),
    "epochs": (["--epochs", "3"], 3, 3),
    "judge_repeats": (["--judge-repeats", "2"], 2, 2),
    "panel": (["--panel", "median"], "median", "median"),
    "min_judges": (["--min-judges", "2"], 2, 2),
    "gen_kwargs": (["--gen-kwargs", "a=1,b=x,c=[2]"], {"a": 1, "b": "x", "c": [2]}, {"a": 1, "b": "x", "c": [2]}),
    "extra_body": (["--extra-body", '{"a": {"b": null}}'], {"a": {"b": None}}, {"a": {"b": None}}),
    "judge_base_url": (["--judge-base-url", "http://127.0.0.1:2/v1"], "http://127.0.0.1:2/v1", ("http://127.0.0.1:2/v1",)),
    "judge_temperature": (["--judge-temperature", "0"], 0.0, 0.0),
    "judge_max_tokens": (["--judge-max-tokens", "5"], 5, 5),
    "judge_max_context": (["--judge-max-context", "6"], 6, 6),
    "judge_thinking": (["--judge-thinking", "on"], True, "on"),
    "judge_reasoning_effort": (["--judge-reasoning-effort", "low"], "low", "low"),
    "judge_attempts": (["--judge-attempts", "2"], 2, 2),
    "judge_json_schema": (["--judge-json-schema"], True, True),
    "judge_extra_body": (["--judge-extra-body", '{"a": 1}'], {"a": 1}, {"a": 1}),
    "no_judge": (["--no-judge"], True, True),
    "protocol": (["--protocol", "official"], "official", "official"),
    "gui_diagnostics": (["--gui-diagnostics"], True, True),
    "prompts": (["--prompts", "official"], "official", Path("official")),
    "sample_id": (["--sample-id", 'web/"a,b"/1', "--sample-id", "web/1/1"], ['web/"a,b"/1', "web/1/1"], ('web/"a,b"/1', "web/1/1")),
    "limit_trajectories": (["--limit-trajectories", "4"], 4, 4),
    "shard": (["--shard", "3,1/4"], "1,3/4", "1,3/4"),
    "max_connections": (["--max-connections", "3"], 3, 3),
    "requests_per_minute": (["--rpm", "30"], 30, 30),
    "tokens_per_minute": (["--tokens-per-minute", "90000"], 90000, 90000),
    "judge_requests_per_minute": (["--judge-requests-per-minute", "5"], 5, 5),
    "judge_tokens_per_minute": (["--judge-tpm", "7"], 7, 7),
    "stream": (["--stream"], True, True),
    "judge_stream": (["--judge-stream"], True, True),
    "max_retries": (["--max-retries", "0"], 0, 0),
    "timeout": (["--timeout", "1.5"], 1.5, 1.5),
    "retry_failed": (["--retry-failed"], True, True),
    "fail_on_error": (["--fail-on-error", "0"], 0, 0.0),
    "max_cost": (["--max-cost", "2.5"], 2.5, 2.5),
    "price": (["--price", "a/b=1,2", "--price", "c=3,4,0.5"], ["a/b=1,2", "c=3,4,0.5"], ("a/b=1,2", "c=3,4,0.5")),
    "output_tokens": (["--output-tokens", "100-2000"], "100-2000", "100-2000"),
    "judge_output_tokens": (["--judge-output-tokens", "300"], 300, "300-300"),
    "yes": (["--yes"], True, True),
    "processes": (["--processes", "3"], 3, 3),
    "cache": (["--cache", "a_b"], "a_b", Path("a_b")),
    "dry_run": (["--dry-run"], True, True),
    "display": (["--display", "none"], "none", "none"),
    "json_events": (["--json"], True, True),
}  # fmt: skip


class Flags:
    """`awb run WORDS…` up to the configuration it makes."""

    def __init__(self, awb: HereAwb, monkeypatch: pytest.MonkeyPatch) -> None:
        self._awb = awb
        self.made: list[RunConfig] = []
        monkeypatch.setattr(run_commands, "_evaluate", lambda config, stream: self.made.append(config))

    def __call__(self, *words: str) -> RunConfig:
        done = self._awb("run", *words)
        assert done.code == 0, done.err
        return self.made.pop()

    def refused(self, *words: str) -> str:
        done: Done = self._awb("run", *words)
        assert done.code == 2
        assert not self.made
        return done.only_complaint


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Flags:
    return Flags(HereAwb(tmp_path, monkeypatch, capsys), monkeypatch)


def test_every_field_has_a_case() -> None:
    without = {
        "recipe",  # a block of its own, and no flag
        "allow_code",  # a flag that no file may give (test_own_metrics.py)
    }
    assert set(FIELDS) == set(RunConfig.model_fields) - without


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_set_three_ways(flags: Flags, tmp_path: Path, name: str) -> None:
    words, in_yaml, value = FIELDS[name]
    assert getattr(flags(*words), name) == value
    assert type(getattr(flags(*words), name)) is type(value)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump({name: in_yaml}), encoding="utf-8")
    assert getattr(flags("--config", str(file)), name) == value
    assert getattr(make_config({name: in_yaml}), name) == value


@pytest.mark.parametrize("name", [name for name, (_, _, value) in FIELDS.items() if value is True])
def test_what_a_file_switches_on_a_flag_switches_off(flags: Flags, tmp_path: Path, name: str) -> None:
    (flag,), file = FIELDS[name][0], tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump({name: True}), encoding="utf-8")
    words = ("--judge", "openai-api/j") if name == "no_judge" else (f"--no-{flag.removeprefix('--')}",)
    assert getattr(flags("--config", str(file)), name) is True
    assert getattr(flags("--config", str(file), *words), name) is False
    assert getattr(flags(*words), name) is False


@pytest.mark.parametrize("name", FIELDS)
def test_nothing_else_is_set_by_a_flag(flags: Flags, name: str) -> None:
    changed = {field for field, value in flags(*FIELDS[name][0]) if value != getattr(RunConfig(), field)}
    assert changed <= {name}


def test_flags_win_over_the_file(flags: Flags, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("seed: 5\ntemperature: 0.5\ntasks: swe\njudge: [a/b]\nlimit: 9\n", encoding="utf-8")
    config = flags("-C", str(file), "--seed", "0", "--temperature", "0", "-t", "os", "--judge", "c/d")
    assert (config.seed, config.temperature, config.tasks, config.judge) == (0, 0.0, ("os",), ("c/d",))
    assert config.limit == "9"
    assert make_config({"seed": None}, file).seed == 5


@pytest.mark.parametrize(
    "words",
    [
        ["--num_concurrent", "7"],
        ["--num-concurrent", "7"],
        ["--max_connections", "7"],
        ["-j", "7"],
    ],
)
def test_names_of_the_connection_limit(flags: Flags, words: list[str]) -> None:
    assert flags(*words).max_connections == 7


def test_aliases_and_underscores(flags: Flags) -> None:
    config = flags(
        *("--model_base_url", "http://127.0.0.1:1/v1", "--predict-only", "--domains", "swe,os"),
        *("--judge_max_tokens", "3", "-m", "a_b/c_d", "-L", "5", "-o", "a_b"),
    )
    assert (config.base_url, config.no_judge, config.tasks) == ("http://127.0.0.1:1/v1", True, ("swe", "os"))
    # Only the names of flags are folded, never what they are given.
    assert (config.model, str(config.output)) == ("a_b/c_d", "a_b")
    assert flags("--predict_only").no_judge


@pytest.mark.parametrize("limit", ["1", "10", "0.1", ".5", "1.0", "0.001", "1-20", "7-7"])
def test_limit_forms(flags: Flags, limit: str) -> None:
    assert flags("--limit", limit).limit == limit


@pytest.mark.parametrize(("given", "made"), [(10, "10"), (0.25, "0.25"), (" 3 ", "3"), (None, None)])
def test_limit_from_yaml_or_python(given: Any, made: str | None) -> None:
    assert RunConfig(limit=given).limit == made


@pytest.mark.parametrize(
    "limit",
    [
        "0",
        "-1",
        "0.0",
        "0.",
        "1.5",
        "0-3",
        "3-",
        "-3",
        "3-2",
        "10%",
        "all",
        "",
        "1e3",
        "0x1",
        "1,2",
        "01",
        "٣",
    ],
)
def test_limits_that_are_refused(flags: Flags, limit: str) -> None:
    complaint = flags.refused(f"--limit={limit}")
    assert complaint.startswith("awb: --limit: ")
    assert repr(limit) in complaint


@given(st.text(max_size=8) | st.integers() | st.floats(allow_nan=True))
def test_a_limit_is_a_known_form_or_a_config_error(value: Any) -> None:
    try:
        limit = make_config({"limit": value}).limit
    except ConfigError as problem:
        assert "--limit: " in str(problem)
        return
    assert limit is not None
    first, dash, last = limit.partition("-")
    assert int(first) <= int(last) if dash else float(limit) > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-connections", "0"], "--max-connections: Input should be greater than or equal to 1 (got 0)"),
        (["--max-tokens", "0"], "--max-tokens: Input should be greater than or equal to 1 (got 0)"),
        (["--timeout", "0"], "--timeout: Input should be greater than 0 (got 0"),
        (["--timeout", "nan"], "--timeout: Input should be a finite number"),
        (["--top-p", "0"], "--top-p: Input should be greater than 0"),
        (["--temperature", "-1"], "--temperature: Input should be greater than or equal to 0"),
        (["--max-retries", "-1"], "--max-retries: Input should be greater than or equal to 0"),
        (["--judge-attempts", "0"], "--judge-attempts: Input should be greater than or equal to 1"),
        (["--limit-trajectories", "0"], "--limit-trajectories: Input should be greater than or equal to 1"),
        (["--fail-on-error", "2"], "--fail-on-error: Input should be less than or equal to 1"),
        (["--protocol", "paper"], "--protocol: Input should be 'builtin' or 'official' (got 'paper')"),
        (["--display", "loud"], "--display: Input should be 'auto', 'live', 'plain' or 'none'"),
        (["--seed", "1.5"], "'--seed'"),
        (["--seed", ""], "'--seed'"),
        (["--extra-body", '{"a": '], "--extra-body: not a JSON object"),
        (["--extra-body", "[1]"], "--extra-body: expected key=value,… or a JSON object"),
        (["--gen-kwargs", "temperature"], "--gen-kwargs: expected key=value,… or a JSON object"),
        (["--judge", "a/b", *("--judge-base-url", "http://127.0.0.1:1") * 2], "--judge-base-url stands once, or once for each --judge"),
        (["--model", "a\udcff"], "--model: not valid text"),
        (["--tasks", "a\udcff"], "--tasks: not valid text"),
    ],
)  # fmt: skip
def test_values_that_are_refused(flags: Flags, words: list[str], message: str) -> None:
    assert message in flags.refused(*words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limti: 3\n", "FILE:1: unknown key 'limti'; did you mean 'limit'?"),
        ("model: a/b\nmax-tokens: 3\n", "FILE:2: unknown key 'max-tokens'; did you mean 'max_tokens'?"),
        ("config: x.yaml\n", "FILE:1: unknown key 'config'"),
        ("model: a/b\nmodel: c/d\n", "FILE:2: key 'model' stands twice (first on line 1)"),
        ("model: 3\n", "FILE:1: 'model': Input should be a valid string (got 3)"),
        ("seed: many\n", "FILE:1: 'seed': Input should be a valid integer"),
        ("temperature: true\n", "FILE:1: 'temperature': expected a value, not true or false"),
        ("seed: yes\n", "FILE:1: 'seed': expected a value, not true or false"),
        ("limit: true\n", "FILE:1: 'limit': expected a number of samples (10)"),
        ("limit: 0\n", "FILE:1: 'limit': expected a number of samples (10)"),
        ("yes: perhaps\n", "FILE:1: 'yes': Input should be a valid boolean"),
        ("display: livee\n", "FILE:1: 'display' is 'livee'; did you mean 'live'?"),
        ("extra_body: [1]\n", "FILE:1: 'extra_body': Input should be a valid dictionary"),
        ("judge: [a/b, c/d]\njudge_base_url: [x, y, z]\n", "FILE:1: --judge-base-url stands once"),
        ("extra_body: &a {x: *a}\n", "FILE:1: nested too deeply, or an alias stands inside itself"),
        ("seed: 1\n  limit: 2\n", "FILE:2: not valid YAML"),
        ("", "FILE:1: expected a mapping of keys to values"),
        ("- seed\n", "FILE:1: expected a mapping of keys to values"),
    ],
)
def test_files_that_are_refused(flags: Flags, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text, encoding="utf-8")
    assert message.replace("FILE", str(file)) in flags.refused("--config", str(file))


def test_yes_is_a_key_and_not_true(flags: Flags, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("yes: true\nextra_body: {no: 1, 2: x, null: y}\n", encoding="utf-8")
    config = flags("--config", str(file))
    assert config.yes
    assert config.extra_body == {"no": 1, "2": "x", "null": "y"}


def test_a_file_that_is_missing(flags: Flags) -> None:
    assert "awb: gone.yaml: cannot be read" in flags.refused("--config", "gone.yaml")


@pytest.mark.parametrize("field", ["extra_body", "judge_extra_body", "gen_kwargs", "model_args"])
@pytest.mark.parametrize(
    "body",
    [
        {"api_key": SECRET},
        {"apikey": SECRET},
        {"x-api-key": SECRET},
        {"Authorization": f"Bearer {SECRET}"},
        {"client_secret": SECRET},
        {"password": SECRET},
        {"access_token": SECRET},
        {"hf_token": SECRET},
        {"token": SECRET},
        {"use_auth_token": SECRET},
        {"extra_headers": {"Authorization": SECRET}},
        {"tools": [{"auth": {"api_key": SECRET}}]},
    ],
)
def test_credentials_are_refused_and_not_echoed(
    flags: Flags, tmp_path: Path, field: str, body: dict[str, Any]
) -> None:
    flag = "--" + field.replace("_", "-")
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump({"seed": 1, field: body}, sort_keys=False), encoding="utf-8")
    complaints = [
        flags.refused(flag, json.dumps(body)),
        flags.refused("--config", str(file)),
    ]
    for complaint in complaints:
        assert "looks like a credential; keys come from the environment only" in complaint
        assert SECRET not in complaint
    assert f"{file}:2: '{field}'" in complaints[1]


@pytest.mark.parametrize(
    "words",
    [
        f"api_key={SECRET}",
        SECRET,
        f"{{'api_key': '{SECRET}'}}",
        f'{{"a": "{SECRET}"',
        f'a={{"token":1}},{SECRET}',
    ],
)
def test_a_key_in_another_form_is_not_echoed(flags: Flags, words: str) -> None:
    assert SECRET not in flags.refused("--extra-body", words)


@pytest.mark.parametrize(
    "name", ["max_thinking_tokens", "stop_token", "tokenizer", "passage", "top_k", "eos_token_id"]
)
def test_harmless_names_are_not_taken_for_credentials(name: str) -> None:
    assert make_config({"extra_body": {name: 1}}).extra_body == {name: 1}


@pytest.mark.parametrize("words", ["token=true", "token=True", "use_auth_token=None", "tokenizer=org/name"])
def test_arguments_of_an_engine_that_hold_no_credential(flags: Flags, words: str) -> None:
    """The first three say whether a token that lies elsewhere is to be used."""
    assert flags("-M", words).model_args.keys() == {words.partition("=")[0]}


@pytest.mark.parametrize("wrong", ["--limti", "--model_bas_url", "--jugde"])
def test_an_unknown_flag_has_a_suggestion(flags: Flags, wrong: str) -> None:
    complaint = flags.refused(wrong, "1")
    near = {"--limti": "--limit", "--model_bas_url": "--model-base-url", "--jugde": "--judge"}[wrong]
    assert complaint.startswith("awb: No such option: ")
    assert near in complaint
    assert complaint.endswith("(see awb run --help)")


def test_an_unknown_keyword_has_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"unknown option 'limti'; did you mean 'limit'\?"):
        make_config({"limti": 3})


def test_judge_urls_stand_once_or_once_each() -> None:
    one = make_config({"judge": ["a", "b"], "judge_base_url": "u"})
    assert [one.judge_url(0), one.judge_url(1)] == ["u", "u"]
    two = make_config({"judge": ["a", "b"], "judge_base_url": ["u", "v"]})
    assert [two.judge_url(0), two.judge_url(1)] == ["u", "v"]
    assert make_config({"judge": ["a"]}).judge_url(0) is None
