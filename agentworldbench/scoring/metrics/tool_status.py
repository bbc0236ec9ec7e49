"""How a tool call ended: success, error of the tool, error of the protocol, or nothing at all.

An error of the protocol did not come from the tool: the call never reached it (unknown tool, arguments refused,
server away) or the interface behind it refused the request. JSON is read by what its envelope and its keys say, else
by how its text begins; a command by its exit code; other text by how it begins. Only beginnings and ends count: a
file that mentions an error further down was read without one.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentworldbench.scoring.metrics.json_payload import Payload

SUCCESS: Final = "success"
TOOL_ERROR: Final = "tool error"
PROTOCOL_ERROR: Final = "protocol error"
EMPTY: Final = "empty"

_HEAD: Final = 1000
_HEAD_LINES: Final = 4
_TAIL: Final = 500
"""What is looked at of a text."""

_EXIT_CODE: Final = re.compile(
    r"^(?:return code:|\[?(?:\w{1,20} ){1,5}(?:(?:return|exit) (?:code|status)|with code):?) (-?\d{1,9})[.\]]*\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST_EXIT_CODE: Final = re.compile(
    r"(?:error: )?(?:exit code:? |<(?:returncode|exit_code)>)(-?\d{1,9})\b", re.IGNORECASE
)
_STOPPED: Final = re.compile(r"^=== EXECUTION TIMEOUT", re.MULTILINE)

_PROTOCOL: Final = re.compile(
    r"MCP error -32\d{3}"
    r"|^(?:\w+ )?API Error: (?:\d{3}\b|Request|Connection)"
    r"|^(?:Error: )?(?:HTTP|Status|Request failed with status code) [45]\d\d\b"
    r"|^(?:Error: )?(?:Connection|Stream|Streaming|Network|Rate limit) (?:error|closed|refused|reset)\b"
    r"|\bInput ?Validation ?error\b"
    r"|\b\d+ validation errors? for \w+"
    r"|^(?:Error: )?(?:missing required (?:parameter|argument|field)|unexpected parameter)"
    r"|\bparams (?:must|should) (?:have|be|NOT have|match)\b"
    r"|^(?:Error: )?Invalid (?:params|parameters|arguments)\b"
    r"|^(?:Error \w{1,20}ing(?: tool| MCP tool)? \S{1,200}:? )*"
    r"(?:Timed out while waiting for response|Server not initialized|Connection closed|Invalid JSON input for tool)"
    r"|^(?:Error: )?(?:Unknown tool|No such tool|Tool \"?[\w.:-]{1,100}\"? (?:was )?not found)",
    re.IGNORECASE | re.MULTILINE,
)
"""Looked for in the first lines of a text."""

_TOOL: Final = re.compile(
    r"(?:#{1,4} (?:Result|Error)\n+)?(?:"
    r"<tool_use_error>|<error>|#{1,4} Error\b"
    r"|(?:[\w.]{1,60}(?:Error|Exception)|Error|fatal)(?::|\Z| \(| \d)"
    r"|Error (?!handling)\w{1,20}ing\b[^\n]{0,300}:"
    r"|(?:[a-z][\w-]{0,20} ){1,2}errors?(?::| \()"
    r"|(?-i:E[A-Z]{4,}): "
    r"|(?:Failed|Unable|Could not|Couldn't|Cannot|Can't)(?: to)? [a-z]"
    r"|(?:Access|Permission|Operation) (?:denied|not permitted|cancelled)|Security violation|\[Operation cancelled\]"
    r"|Unauthorized|Forbidden|Invalid [a-z]|Missing [a-z]+ [a-z]+|Traceback \(most recent call last\)"
    r"|(?:/bin/)?(?:ba)?sh: |[a-z]+: (?:cannot|can't) "
    r"|[\w ]{1,40} (?:failed(?:: |\.?\Z)|(?:not found|does not exist): )"
    r"|Command (?:timed out|was cancelled|execution timed out|terminated|failed)"
    r"|(?:old_string|String to replace|File) (?:has not been read|not found|does not exist|was not found)"
    r"|The user doesn't want|Tool execution (?:failed|denied)|Request timed out"
    r"|[^\n]{1,250} (?:not found|does not exist|already exists|did not resolve to an object|is not allowed)"
    r"(?: in [^\n]{1,100})?[.!]?\Z"
    r")",
    re.IGNORECASE,
)
"""Matched at the very beginning of a text."""

_NOTHING_FOUND: Final = re.compile(r"No \w", re.IGNORECASE)
_CODE_KEYS: Final = ("Exit Code", "exit_code", "exitCode", "return_code", "returncode", "returnCode")


def status(payload: Payload | None, text: str) -> tuple[str, bool]:
    """How the call ended, and whether that is an error: by `isError` where it is given, else by the rest.

    `payload` is None for plain text. The flag is part of the answer because the two may differ: some servers report
    an error in words alone.
    """
    found = text_status(text) if payload is None else _payload_status(payload)
    if payload is None or payload.flag is None:
        return found, found in (TOOL_ERROR, PROTOCOL_ERROR)
    return (TOOL_ERROR if payload.flag and found in (SUCCESS, EMPTY) else found), payload.flag


def _payload_status(payload: Payload) -> str:
    if payload.fault:
        return PROTOCOL_ERROR
    value = payload.value
    if isinstance(value, dict):
        return TOOL_ERROR if _says_error(value) else SUCCESS
    if isinstance(value, list):
        parts = payload.envelope and payload.raw is None
        if parts and all(isinstance(item, str) for item in value):
            return text_status("\n".join(value))
        return SUCCESS if value or payload.raw else EMPTY
    if isinstance(value, str) and (value.strip() or not payload.structured):
        return text_status(value)
    return SUCCESS


def _says_error(answer: dict[str, Any]) -> bool:
    """Whether an object's own keys call it an error."""
    for key in _CODE_KEYS:
        if isinstance(answer.get(key), int):
            return bool(answer[key])
    code, error, errors = (answer.get(key) for key in ("status", "error", "errors"))
    refused = code in ("failed", "failure") or (isinstance(code, int) and code >= 400)
    return (
        code == "error"
        or answer.get("object") == "error"
        or (refused and "message" in answer)
        or any(answer.get(key) is False for key in ("success", "ok"))
        # A number of that name is a measure.
        or error is True
        or (isinstance(error, str | dict) and bool(error))
        or (bool(errors) and not answer.get("data"))
        or {"message", "documentation_url"} <= answer.keys()
        or _is_refusal(answer)
        or ("Exit Code" in answer and answer.get("Signal", "(none)") != "(none)")
    )


def _is_refusal(answer: dict[str, Any]) -> bool:
    """`{"code": …, "message": …, "data": {"status": 404}}`, as shops and blogs answer."""
    data = answer.get("data")
    code = data.get("status") if isinstance(data, dict) else None
    return isinstance(code, int) and code >= 400 and {"code", "message"} <= answer.keys()


def text_status(text: str) -> str:
    """How a call ended that answered in words: a command's output, a notice of the tool, a file."""
    if not text.strip():
        return EMPTY
    head = "\n".join(text.strip()[:_HEAD].split("\n")[:_HEAD_LINES])
    code = _FIRST_EXIT_CODE.match(head) or _last_exit_code(text[-_TAIL:])
    if code is not None:
        return TOOL_ERROR if int(code.group(1)) else SUCCESS
    if _PROTOCOL.search(head):
        return PROTOCOL_ERROR
    failed = _STOPPED.search(text[-_TAIL:]) or (_TOOL.match(head) and not _NOTHING_FOUND.match(head))
    return TOOL_ERROR if failed else SUCCESS


def _last_exit_code(text: str) -> re.Match[str] | None:
    found = None
    for found in _EXIT_CODE.finditer(text):  # noqa: B007
        pass
    return found
