"""docs/commands.md is what the command line says, and its tables of exit codes and variables are what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from agentworldbench import errors
from agentworldbench.cli.reference import ENVIRONMENT, EXIT_CODES
from agentworldbench.config import RunConfig
from tests.helpers.command_line import EVERYWHERE, all_flags
from tools import make_command_reference

PACKAGE = Path(errors.__file__).parent
OURS_ALONE = frozenset({"HOME", "PATH"})
SET_BY_US = re.compile(r"^(AIOHTTP_|LITELLM_|TRANSFORMERS_|VLLM_|TOKENIZERS_)")
"""Variables of libraries that the harness sets for itself; nobody else needs to."""


def test_the_page_is_fresh() -> None:
    text = make_command_reference.PAGE.read_text(encoding="utf-8")
    assert text == make_command_reference.page(), "renew it: python -m tools.make_command_reference"


def test_every_flag_stands_there_once_and_names_what_it_takes() -> None:
    text = make_command_reference.PAGE.read_text(encoding="utf-8")
    commands = list(make_command_reference.commands())
    assert len(commands) > 25
    for flag in all_flags() - EVERYWHERE:
        assert f"`{flag}`" in text, flag
    (whole,) = (one for one in commands if one.name == "awb run")
    assert len(whole.flags) == 1 + sum(
        field.json_schema_extra is not None for field in RunConfig.model_fields.values()
    )
    by_name = {one.names[0]: one for one in whole.flags}
    assert by_name["--thinking"].value == "on|off|default"
    assert by_name["--judge-attempts"].default == "3"
    assert by_name["--max-connections"].names == ("--max-connections", "--num-concurrent", "-j")
    assert by_name["--limit"].value == "N|F|A-B"
    for command in commands:
        assert text.count(f"\n## {command.name}\n") == 1
        assert command.text[0], f"{command.name} says what it does"
        for flag in command.flags:
            assert flag.text, f"{command.name} {flag.names[0]} says what it does"


def test_exit_codes_are_those_of_the_code() -> None:
    raised = {
        kind.exit_code
        for kind in vars(errors).values()
        if isinstance(kind, type) and hasattr(kind, "exit_code")
    }
    for path in (PACKAGE / "cli").glob("*.py"):
        raised.update(map(int, re.findall(r"typer\.Exit\((\d+)\)", path.read_text(encoding="utf-8"))))
    listed = [code for code, _ in EXIT_CODES]
    assert listed == sorted(set(listed))
    assert raised <= set(listed)


def variables() -> set[str]:
    """Variables of the environment that the package reads, by name."""
    read = re.compile(r"""["']((?:AWB|HF)_[A-Z_]+)["']|os\.(?:environ\.get|getenv)\(\s*["'](\w+)["']""")
    texts = (path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")))
    return {one or other for text in texts for one, other in read.findall(text)}


def test_every_variable_that_is_read_is_named() -> None:
    named = " ".join(f"{names} {what}" for names, what in ENVIRONMENT).replace("/agentworldbench`", "`")
    found = variables()
    assert {"AWB_API_KEY", "AWB_JUDGE_API_KEY", "AWB_CACHE"} <= found
    missing = {name for name in found if f"`{name}`" not in named and not SET_BY_US.match(name)} - OURS_ALONE
    assert missing == set()
    for name in re.findall(r"AWB_[A-Z_]+", named):
        assert name in found, f"{name} is read nowhere"
