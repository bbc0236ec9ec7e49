"""What users of lm-eval, Inspect AI and the official script type: one line says what is typed here (`cases/cli/other_words.yaml`).

The table itself is held to what exists: its flags and commands are ours, and none of its words is one of ours.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench import compare_runs, evaluate, load_run
from agentworldbench.config import RunConfig, make_config
from agentworldbench.errors import ConfigError
from agentworldbench.models.providers import LITELLM_PROVIDERS
from agentworldbench.other_harnesses import COMMANDS, OPTIONS, model_elsewhere, option_elsewhere
from agentworldbench.resources import asset, mini_folder
from tests.helpers.awb_command import HereAwb
from tests.helpers.command_line import all_flags, complaint, unknown_words
from tests.helpers.doc_rules import RULES

CASES = yaml.safe_load((Path(__file__).parent / "cases/cli/other_words.yaml").read_text(encoding="utf-8"))
FILES = {
    "lm_eval.yaml": "model: hf\nnum_fewshot: 5\n",
    "run.toml": 'model = "hf/x"\n',
    "log.json": "{}",
    "log.eval": "PK\x03\x04",
}


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(("words", "said"), [(one["typed"], one["said"]) for one in CASES])
def test_one_line_says_what_is_typed_here(awb: HereAwb, tmp_path: Path, words: str, said: str) -> None:
    done = awb(*shlex.split(words))
    assert done.code == 2
    assert said in done.only_complaint
    assert "secret" not in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


def test_the_flags_and_commands_that_are_named_exist() -> None:
    for name, said in OPTIONS.items():
        for flag in re.findall(r"--[\w-]+", said):
            assert flag in all_flags(), (name, flag)
        for command in re.findall(r"`(awb [^`]+)`", said):
            assert unknown_words(command) == [], name
    for name, said in COMMANDS.items():
        for command in re.findall(r"awb [a-z]+(?: [a-z]+)?(?= |,|$)", said):
            assert unknown_words(command) == [], (name, command)


def test_every_flag_of_others_in_the_tables_of_the_page_is_answered() -> None:
    for flag in RULES.foreign_flags["docs/coming.md"]:
        assert option_elsewhere(flag), flag


def test_no_word_of_others_is_one_of_ours() -> None:
    for name in OPTIONS:
        *command, option = name.split()
        dashes = "-" if len(option) == 1 else "--"
        assert "No such option" in (complaint([*(command or ["run"]), f"{dashes}{option}"]) or ""), name
    assert RunConfig.model_fields.keys() & {name.replace("-", "_") for name in OPTIONS} == set()
    for name in COMMANDS:
        assert "No such command" in (complaint([name]) or ""), name


def test_models_that_can_be_asked_are_left_alone() -> None:
    for provider in LITELLM_PROVIDERS - {"vllm"}:
        assert model_elsewhere(f"{provider}/x", {}, None) is None, provider
    for name in ("hf/a/b", "vllm/a/b", "baseline/empty", "replay/x", "openai-api/x", "gpt-5.4"):
        assert model_elsewhere(name, {}, None) is None
    for name in ("google/gemma-3-27b-it", "grok/x", "hf", "dummy", "copy-last"):
        assert model_elsewhere(name, {}, "http://127.0.0.1:1/v1") is None, "the server's own name"


def test_from_python_too() -> None:
    with pytest.raises(ConfigError, match="unknown option 'num_fewshot'; leave it out"):
        evaluate("baseline/empty", num_fewshot=5)
    with pytest.raises(ConfigError, match="--model hf: here --model hf/a/b"):
        evaluate("hf", model_args={"pretrained": "a/b"})
    assert option_elsewhere("--limit") == option_elsewhere("log-dir", "leaderboard show") == ""


def test_paths_and_runs_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    task = asset("tasks", "swe.yaml")
    one = evaluate("baseline/copy-last", data=mini_folder(), tasks=task, limit=1, output=tmp_path / "one")
    two = evaluate("baseline/empty", data=str(mini_folder()), tasks=[task], limit=1, output="two")
    found = compare_runs(one, two)
    assert (found.first.path, found.second.path) == (str(tmp_path / "one"), "two")
    assert load_run(one).results == one.results


def test_a_configuration_file_may_be_json(tmp_path: Path) -> None:
    file = tmp_path / "my.json"
    file.write_text(
        '{\n\t"model": "hf/a/b",\n\t"model_args": {"dtype": "bfloat16"},\n\t"tasks": ["swe"]\n}\n'
    )
    made = make_config({}, file)
    assert (made.model, made.model_args, made.tasks) == ("hf/a/b", {"dtype": "bfloat16"}, ("swe",))


class Mine:
    """A model as other harnesses take it."""

    async def generate(self, request: str) -> str:
        """Never asked."""
        return request


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"model": Mine()},
            "--model: a model is named by a string; one that is Python code writes its answers",
        ),
        ({"model": "baseline/empty", "judge": [Mine()]}, "--judge: a model is named by a string"),
        ({"model": "baseline/empty", "judge": len}, "--judge: a model is named by a string"),
        ({"model": "baseline/empty", "dry_run": True}, "dry_run: evaluate() always asks"),
    ],
)
def test_what_python_cannot_be_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(said)):
        evaluate(**options)
    assert list(tmp_path.iterdir()) == []
