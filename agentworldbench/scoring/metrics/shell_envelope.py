"""The envelope in which coding agents hand over what a command did: Command, Directory, Output, Error, Exit Code.

In: a text. Out: its fields, or None where it is no such envelope. There are two styles, with the command repeated
in front and without; a field that an agent leaves out is left out here.
"""

from __future__ import annotations

import re
from typing import Any, Final

_TAIL: Final = ("Exit Code", "Signal", "Background PIDs", "Process Group PGID")
_FIELD: Final = re.compile(
    rf"^(Command|Directory|Output|Stdout|Stderr|Error|{'|'.join(_TAIL)}):(?: |$)", re.MULTILINE
)
_WHOLE: Final = re.compile(r"-?\d{1,18}")
AFTER: Final = "(after)"
"""The field that holds text behind the exit code which is no field."""


def read_shell_envelope(text: str) -> dict[str, Any] | None:
    """Fields by name; an exit code is a number.

    Commands and output may hold lines that look like fields: a command ends at the first `Directory`, the output at
    the last `Error` before the first exit code.
    """
    places = _places(list(_FIELD.finditer(text)))
    if not places or places[0].start() != 0:
        return None
    names = [place[1] for place in places]
    if "Exit Code" not in names and names[:2] != ["Command", "Directory"]:
        return None
    ends = [*(place.start() for place in places[1:]), len(text)]
    fields: dict[str, Any] = {
        place[1]: text[place.end() : end].strip("\n") for place, end in zip(places, ends, strict=True)
    }
    if names[-1] in _TAIL:
        fields[names[-1]], _, after = fields[names[-1]].partition("\n")
        if after.strip():
            fields[AFTER] = after
    code = fields.get("Exit Code", "")
    return {**fields, "Exit Code": int(code)} if _WHOLE.fullmatch(code) else fields


def _places(found: list[re.Match[str]]) -> list[re.Match[str]]:
    """The field heads that count, in order."""
    names = [match[1] for match in found]
    code = names.index("Exit Code") if "Exit Code" in names else len(names)
    places = [*found[:1]] if code else []
    at = 1
    if names[:1] == ["Command"] and "Directory" in names[1:code]:
        at = names.index("Directory", 1, code) + 1
        places.append(found[at - 1])
    if names[:1] == ["Error"] and {"Command", "Output", "Stdout"} & set(names[1:code]):
        return []
    if names[:1] == ["Command"] and (streams := {"Output", "Stdout"} & set(names[at:code])):
        at = min(names.index(name, at, code) for name in streams) + 1
        places.append(found[at - 1])
    errors = [index for index in range(at, code) if names[index] in ("Stderr", "Error")]
    for name in ("Stderr", "Error"):
        if wanted := [index for index in errors if names[index] == name]:
            places.append(found[wanted[-1]])
    for offset, match in enumerate(found[code : code + len(_TAIL)]):
        if match[1] != _TAIL[offset]:
            break
        places.append(match)
    return places
