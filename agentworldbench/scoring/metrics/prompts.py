"""Shapes of the prompts of shells and of programs that read commands, and who and where a shell's prompt names.

All patterns are for a whole prompt without the blank behind it. Masked text may stand in them
(`root@<CONTAINER_ID>:/app#`). Every repetition is bounded.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ENVIRONMENT: Final = r"(?:\([^()\n]{1,40}\) ?){0,3}"
_ENVIRONMENT_FRONT = re.compile(f"^{_ENVIRONMENT}")
_SHELL = re.compile(
    rf"{_ENVIRONMENT}(?:"
    # user@host:dir$, [user@host dir]#, user@host dir %
    r"\[?(?P<user>[\w.+<>-]{1,40}|I have no name!)@(?P<host>[\w.<>-]{1,80})(?:[: ] ?(?P<dir>[^\n$#%\]]{0,200}?))?\]? ?[$#%>❯]"
    # host:dir user$
    r"|(?P<host2>[\w.-]{1,60}):(?P<dir2>[~/][^\s$#%]{0,200}) (?P<user2>[\w.-]{1,40})[$#%]"
    # bash-5.1#, sh$
    r"|-?(?:ba|z|da|k|a|c|tc|fi)?sh(?:-\d[\d.]{0,10})?[$#%>]"
    # /app #, ~ $
    r"|(?P<dir3>~(?=[/ $#%❯])|/[\w.@+-]{0,60})(?:/[\w.@+-]{1,60}){0,20}/? ?[$#%❯]"
    r"|(?:PS )?[A-Z]:\\[^>\n]{0,200}>|PS [~/][^>\n]{0,200}>"
    r"|➜ {1,2}\S{1,80}(?: git:\([^)\n]{1,80}\))?(?: ✗)?|└─[$#]|[$#%❯])"
)
_ZSH: Final = (
    "(?:cmdsubst|mathsubst|subst|quote|dquote|bquote|heredocd?|pipe|cmdand|cmdor|for|while|until|if|then|else|elif"
    "|case|select|function|braceparam|array)"
)
_CONTINUATION = re.compile(
    rf"(?:{_ZSH} ){{0,4}}{_ZSH}?>|\.{{3}}| {{0,12}}(?:['\"`/-]>|\.{{3}}[:>])|[\w.-]{{1,60}}[-('\"*][#>]"
)
"""Of an unfinished command: `>`, zsh's `heredoc>`, Python's `...`, psql's `db-#`, mysql's `    ->`."""

_PROGRAM = re.compile(
    r">>>|In \[\d{1,6}\]:|\((?:gdb|lldb|Pdb|rdb|dlv|sage)\)|MariaDB \[[^\]\n]{1,60}\]>"
    r"|[A-Za-z][\w.:()@/-]{0,60}(?:=[*!^]?)?[>#]|(?:\d{1,3}\.){3}\d{1,3}:\d{1,5}(?:\[\d{1,4}\])?>"
)
"""Of a program: `>>>`, `(gdb)`, `mysql>`, `db=#`, `robot>`."""

_TOKEN = re.compile(r"\S{0,60}[>#$%*\]]")
"""What counts as a prompt only where a typed line stands behind it."""


class Place(NamedTuple):
    """Who and where a prompt says one is; a prompt of another shape is its whole text, as `host`."""

    user: str
    host: str
    directory: str


def is_shell(prompt: str) -> bool:
    """Whether the text is a shell's prompt."""
    return _SHELL.fullmatch(prompt) is not None


def is_named(prompt: str) -> bool:
    """Whether the text is a shell's prompt that names user and host: certain enough anywhere on a screen."""
    return "@" in prompt and (found := _SHELL.fullmatch(prompt)) is not None and bool(found["user"])


def is_continuation(prompt: str) -> bool:
    """Whether the text is the prompt of an unfinished command."""
    return _CONTINUATION.fullmatch(prompt) is not None


def is_program(prompt: str) -> bool:
    """Whether the text is the prompt of a program that reads commands."""
    return _PROGRAM.fullmatch(prompt) is not None


def may_be_prompt(prompt: str) -> bool:
    """Whether the text in front of a typed line reads as a prompt."""
    return any(shape.fullmatch(prompt) for shape in (_TOKEN, _SHELL, _CONTINUATION, _PROGRAM))


def place(prompt: str) -> Place:
    """User, host and directory of a prompt, without the name of an environment (`(venv)`) in front."""
    if (bare := _ENVIRONMENT_FRONT.sub("", prompt)) and is_shell(bare):
        prompt = bare
    found = _SHELL.fullmatch(prompt)
    if found and found["user"]:
        return Place(found["user"], found["host"], (found["dir"] or "").strip())
    if found and found["user2"]:
        return Place(found["user2"], found["host2"], found["dir2"])
    return Place("", prompt, "")
