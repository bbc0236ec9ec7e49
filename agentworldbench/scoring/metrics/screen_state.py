"""What a terminal is left in, read off the end of its screen.

`shell` and `program` wait for a command, `unfinished` for the rest of one (here-documents, open quotes),
`question` for an answer; `pager` and `editor` fill the screen; else something is `running`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from agentworldbench.scoring.metrics.prompts import is_continuation, is_shell
from agentworldbench.scoring.metrics.screen import FILLER, Screen

State = Literal["pager", "editor", "unfinished", "running", "shell", "program", "question"]

_LONGEST: Final = 1000
_PAGER = re.compile(
    r":|.{0,120}\(END\)|--More--.{0,60}|(?:\S{1,80} )?lines \d{1,9}-\d{1,9}(?:/\d{1,9})?(?: .{0,30})?"
    r"|Manual page .{1,120}|.{0,60}\(press (?:RETURN|h for help).{0,60}|HELP -- Press RETURN.{0,60}"
)
_EDITOR = re.compile(
    # vim: mode, file, position, error
    r"-- (?:\(insert\) |\(replace\) )?(?:INSERT|REPLACE|VISUAL|SELECT)(?: LINE| BLOCK)? --.{0,80}"
    r"|\".{1,120}\" ?(?:\[[^\]\n]{1,40}\] ?){0,3}\d{1,9}(?:L, \d{1,12}[BC]| lines?, \d{1,12} (?:bytes|characters)).{0,40}"
    r"|\".{1,120}\" ?\[New(?: File)?\].{0,40}|.{0,160} \d{1,9},\d{1,9}(?:-\d{1,9})? +(?:All|Top|Bot|\d{1,2}%)"
    r"|E\d{1,4}: .{1,120}|recording @\w|Press ENTER or type command to continue"
    # nano, emacs
    r"|\^X (?:Exit|Close|Read).{0,200}|\^G (?:Get )?Help.{0,200}|Save modified buffer.{0,100}|File Name to Write.{0,160}"
    r"|-[U:*%-]{2,8}-{0,4}F\d+ .{0,200}"
)
_FILLERS: Final = 3
"""So many filler lines make a screen that of an editor, whatever its last line says."""
_PAGING = re.compile(r"(?:^|[;&|] *)(?:less|more|most) (?:.{0,200} )?(\S{1,200})$")
_QUESTION = re.compile(
    r".{0,300}(?:\?|\[(?:y|n)/(?:y|n)(?:/\w){0,3}\]|\((?:yes/no|y/n)[^)\n]{0,40}\)) ?:?"
    r"|.{0,200}(?:password|passphrase|passcode|username|login)[^:\n]{0,80}:|.{0,60}press .{1,40}(?:continue|key).{0,40}"
    r"|(?:please )?(?:enter|type|choose|select|input)\b.{0,160}[:>]",
    re.IGNORECASE,
)


def state_of(screen: Screen, typed: Sequence[str], pending: str) -> State:
    """The state. `typed` are the typed lines, `pending` the last of them when it was not sent off."""
    if screen.last < 0:
        return "running"
    line = screen.lines[screen.last][:_LONGEST]
    if screen.fronts.get(screen.last):
        return "shell" if pending and screen.echoes[screen.last] == pending else "running"
    if _PAGER.fullmatch(line) or _opened(line, typed):
        return "pager"
    if screen.waits:
        return _waiting(line)
    if _EDITOR.fullmatch(line) or screen.lines.count(FILLER) >= _FILLERS:
        return "editor"
    return "question" if _QUESTION.fullmatch(line) else "running"


def _waiting(prompt: str) -> State:
    if is_shell(prompt):
        return "shell"
    return "unfinished" if is_continuation(prompt) else "program"


def _opened(line: str, typed: Sequence[str]) -> bool:
    """Whether the last line is the name of a file that the action opened in a pager, as `less` shows it."""
    return any((found := _PAGING.search(command)) is not None and found[1] == line for command in typed)
