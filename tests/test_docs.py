"""The documentation is true as far as a machine can tell: links, anchors, commands, flags, blocks of Python.

Commands are only read here, by the real command line; `test_docs_run.py` runs them. What is not run and why stands in
`cases/docs/commands.yaml`.
"""

from __future__ import annotations

import importlib.util
import re
import tomllib

import pytest

from tests.helpers.command_line import all_flags, complaint, unknown_words
from tests.helpers.doc_rules import RULES, fits
from tests.helpers.documents import LANGUAGES, ROOT, Command, Page, pages

PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
OURS = ("awb", "make", "python", "pip")


@PAGES
def test_every_block_says_what_it_is(page: Page) -> None:
    for block in page.blocks:
        assert block.language in LANGUAGES, (
            f"{page.name}:{block.line - 1}: name the block's language: sh where every line is a command, console where "
            "those behind `$ ` are, text for what is printed"
        )
        if block.language not in ("sh", "console"):
            hidden = [line for line in block.text.split("\n") if re.match(r"\$ |awb [a-z]+ ", line)]
            assert hidden == [], f"{page.name}:{block.line}: a command in a block of {block.language}"


@PAGES
def test_every_command_can_be_read(page: Page) -> None:
    wrong = [f"{one.where}: {one.text}\n    {problem}" for one in page.commands if (problem := read(one))]
    assert wrong == []


def read(command: Command) -> str | None:
    """What is wrong with a command; None where it can be obeyed."""
    program, *words = (word for word in command.words if word != "…")
    if re.match(RULES.foreign, command.text):
        return None
    if program not in OURS:
        return f"'{program}' is neither ours nor named in cases/docs/commands.yaml as foreign"
    if program == "awb":
        return complaint(words)
    if program == "make":
        targets = re.findall(
            r"^([\w-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
        return next((f"no target {word}" for word in words if word not in targets and "=" not in word), None)
    if program == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        extras = re.findall(r"\[([\w,-]+)\]", " ".join(words))
        return next(
            (f"no extra {one}" for part in extras for one in part.split(",") if one not in known), None
        )
    return without_program(words)


def without_program(words: list[str]) -> str | None:
    """What is wrong with `python WORDS…`: no such program, or a flag that does not occur in its text."""
    if words[0] == "-m":
        name = words[1]
        path = ROOT / f"{name.replace('.', '/')}.py"
        if not path.is_file():
            return None if importlib.util.find_spec(name) else f"no program {name}"
        words = words[1:]
    else:
        path = ROOT / words[0]
    if not path.is_file():
        return f"no program {words[0]}"
    text = path.read_text(encoding="utf-8")
    return next(
        (f"{words[0]} has no {word}" for word in words if word.startswith("--") and f'"{word}"' not in text),
        None,
    )


def test_a_command_with_a_flag_that_does_not_exist_is_found() -> None:
    for text, wrong in {
        "awb run --modle x": "No such option: --modle",
        "awb rnu": "No such command 'rnu'",
        "awb runs lst": "No such command 'lst'",
        "awb run --epochs two": "a valid integer",
        "awb run --model x/y --shard 5/4": "shard",
        "awb judge RUN --judge-attempts 0": "judge-attempts",
        "awb run -C none.yaml": "none.yaml",
        "awb report": "Missing argument 'RUN'",
        "make demos": "no target demos",
        "pip install -e '.[hff]'": "no extra hff",
        "python tools/demo_llm.py --limits 3": "has no --limits",
        "python -m tools.nothing": "no program",
        "lm_eval --model x": "neither ours",
    }.items():
        (command,) = OneCommand(text).commands
        assert wrong in (read(command) or ""), text


class OneCommand(Page):
    """A page with one command."""

    @property
    def lines(self) -> list[str]:  # type: ignore[override]
        """The command in a block."""
        return ["```sh", self.name, "```"]


def test_what_is_only_read_is_named_and_nothing_is_named_in_vain() -> None:
    texts = [command.text for page in pages() for command in page.commands]
    for rule in RULES.parsed:
        assert rule.why
        assert any(re.search(rule.commands, text) for text in texts), (
            f"fits no command any more: {rule.commands}"
        )
    for pattern, _ in RULES.stand_ins:
        assert any(re.search(pattern, text) for text in texts), f"stands in for nothing any more: {pattern}"
    assert set(RULES.codes) <= set(texts)
    named = RULES.foreign_flags.keys() | RULES.compiled.keys() | RULES.before.keys()
    assert named <= {page.name for page in pages()}
    assert len([text for text in texts if text.startswith("awb ") and fits(text) is None]) > 50


@PAGES
def test_commands_and_flags_in_prose_exist(page: Page) -> None:
    foreign = RULES.foreign_flags.get(page.name, ())
    wrong = []
    for number, code in page.inline:
        if re.match(r"awb [a-z-]", code):
            wrong += [f"{page.name}:{number}: {code}: {word}" for word in unknown_words(code)]
        elif found := re.match(r"--[a-z][\w-]*", code):
            known = found[0] in (*foreign, "--no-FLAG") or found[0].replace("_", "-") in all_flags()
            wrong += [] if known else [f"{page.name}:{number}: {found[0]}"]
    assert wrong == []


@PAGES
def test_python_in_the_docs_compiles(page: Page) -> None:
    for block in page.blocks:
        if block.language == "python":
            compile(block.text, f"{page.name}:{block.line}", "exec")


@PAGES
def test_every_link_leads_somewhere(page: Page) -> None:
    wrong = []
    for number, target in page.links:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / page.name).parent.joinpath(path).resolve() if path else ROOT / page.name
        if not place.exists() or not place.is_relative_to(ROOT):
            wrong.append(f"{page.name}:{number}: no {path}")
        elif anchor and anchor not in Page(place.relative_to(ROOT).as_posix()).anchors:
            wrong.append(f"{page.name}:{number}: no {target}")
    assert wrong == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, due = set(), ["README.md"]
    while due:
        name = due.pop()
        if name in reached:
            continue
        reached.add(name)
        for _, target in Page(name).links:
            path = target.partition("#")[0]
            place = (ROOT / name).parent.joinpath(path).resolve()
            if path.endswith(".md") and place.is_relative_to(ROOT) and place.is_file():
                due.append(place.relative_to(ROOT).as_posix())
    assert {page.name for page in pages()} <= reached


def test_the_readme_is_short() -> None:
    assert len(Page("README.md").lines) <= 230
