"""The kinds of error that program output shows, as shells, tools, compilers and interpreters print them.

In: lines of output. Out: a set of names; the empty set is success. Messages count at the places where
programs print them, mostly the start of a line: a log that mentions a timeout is no timeout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_LONGEST: Final = 1000
"""Characters of a line that are looked at; messages are shorter."""

_TABLE: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "command not found",
        "not found|nknown command",
        r": command not found(?:\.\.\.)?$|^zsh: command not found: |^\S{1,200}: (?:line )?\d{1,6}: \S{1,200}: not found$"
        r"|^(?:/bin/)?(?:sh|ash|dash): \S{1,200}: not found$|^Command '[^']{1,80}' not found|^Unknown command: ",
    ),
    ("no such file", "o such file", r": No such file or directory(?:\.|$)|^[Nn]o such file"),
    (
        "permission denied",
        "denied|not permitted|superuser|root",
        r": [Pp]ermission denied|^Permission denied|: Operation not permitted|[Aa]re you root\?"
        r"|must be (?:run as )?(?:root|superuser)",
    ),
    ("exists", "exists", r": File exists$|already exists\.?$"),
    (
        "wrong kind of file",
        "irectory|-r not specified",
        r": Is a directory$|: Not a directory$|: Directory not empty$|-r not specified",
    ),
    (
        "syntax",
        "yntax error|unexpected",
        r"\b[Ss]yntax error\b|^\S{1,200}: .{0,80}unexpected (?:EOF|end of file|token)",
    ),
    (
        "usage",
        "sage|option|argument|operand|--help",
        r"^[Uu]sage: |^\S{1,200}: (?:invalid|unrecognized|unknown|illegal) option|^\S{1,200}: missing .{0,40}operand"
        r"|^\S{1,200}: .{0,60}(?:unrecognized|required): |^Try '.{1,80}--help'|: too (?:many|few) arguments"
        r"|: option requires an argument",
    ),
    (
        "expansion",
        "unbound|not set|redirect|substitution|event",
        r": unbound variable$|: parameter (?:null or )?not set|: ambiguous redirect$|: bad substitution$"
        r"|: event not found$",
    ),
    (
        "version control",
        "fatal: |CONFLICT|error: |rejected",
        r"^fatal: |^CONFLICT \(|^error: (?:pathspec|failed to push|Your local changes)|^ ! \[.{0,30}rejected\]",
    ),
    (
        "build",
        "error|undefined|***",
        r"^[^\s:]{1,200}:\d{1,7}(?::\d{1,7})?: (?:fatal )?error[: ]|^\S{1,200}\(\d{1,7}(?:,\d{1,7})?\): error "
        r"|^error(?:\[E\d{1,5}\]|: (?:could not compile|aborting|link))|: undefined reference to |^collect2: error"
        r"|^(?:g?make|cargo|ld)(?:\[\d{1,3}\])?: (?:\*\*\*|error)",
    ),
    (
        "crash",
        "fault|Bus error|exception|instruction|dumped|Aborted|Killed|panic|terminate|fatal error",
        r"(?:^|: |\d )(?:Segmentation fault|Bus error|Floating point exception|Illegal instruction|Aborted|Killed)\b"
        r"|\(core dumped\)|^thread '.{0,80}' panicked|^panic: |^fatal error: |^terminate called after",
    ),
    (
        "network",
        "resolve|refused|unreachable|resolution|connect|ETIMEDOUT|ENOTFOUND",
        r"Could not resolve|[Cc]onnection refused|[Nn]etwork is unreachable|name resolution|[Ff]ailed to connect to"
        r"|[Uu]nable to connect to|\bE(?:TIMEDOUT|NOTFOUND|CONNREFUSED)\b",
    ),
    (
        "timeout",
        "imed out|imeout",
        r"^[\w./-]{1,60}: (?:.{0,60}\b)?[Tt]imed out\b|^(?:The )?[Cc]ommand timed out|^[Tt]im(?:eout|ed out)\b",
    ),
    (
        "package",
        "E: |distribution|find a version|npm |externally",
        r"^E: |^ERROR: (?:No matching distribution|Could not find a version)|^npm (?:ERR!|error)"
        r"|^error: externally-managed-environment",
    ),
    (
        "tests failed",
        "ailed|FAIL|failing|failure",
        r"^=* ?(?:\d{1,9} \w{1,12}, ){0,6}\d{1,9} failed\b|^FAILED\b|^--- FAIL: |^FAIL\b|^test result: FAILED"
        r"|^Tests: .{0,20}\d failed|^ {1,8}\d{1,9} failing\b|^\d{1,9} examples?, [1-9]\d{0,8} failures?",
    ),
    ("no space", "space left|memory", r"No space left on device|[Cc]annot allocate memory|[Oo]ut of memory"),
    (
        "authentication",
        "uthentication|try again|password|Access denied|Login",
        r"[Aa]uthentication fail|^Sorry, try again|incorrect password|^ERROR 1045|Access denied for user|^Login incorrect",
    ),
    ("in use", "in use|busy|allocated", r"[Aa]ddress already in use|\bbusy$|port is already allocated"),
    ("read-only", "ead-only", r": Read-only file system"),
    (
        "database",
        "ERROR|FATAL|rror",
        r"^(?:psql: )?(?:ERROR|FATAL):  |^ERROR \d{1,6} \(\w{1,10}\)|^(?:Parse|Runtime) error\b"
        r"|^Error: (?:near|in prepare|no such table)",
    ),
    (
        "exit code",
        "xit|eturned",
        r"^\W{0,3}[Ee]xit(?:ed)?(?: with)?[ _]?(?:code|status)?\W{0,3}[1-9]\d{0,2}\b"
        r"|[Rr]eturned (?:non-zero exit|error) (?:status|code) [1-9]",
    ),
    ("shell", ": line ", r"^\S{1,200}: line \d{1,6}: "),
    (
        "error",
        "rror|ERROR|FATAL|atal|annot|an't|nable|ailed|nvalid|efusing",
        r"^(?:\S{1,60}: )?(?:[Ee]rror|ERROR|FATAL|[Ff]atal|[Cc]annot|[Cc]an't|[Uu]nable to|[Ff]ailed to|[Ii]nvalid"
        r"|[Rr]efusing to)\b",
    ),
)
"""Name, what a line of this kind holds (one of several), and its shape. A line is of the first kind that it shows."""

_KINDS: Final = tuple((name, tuple(held.split("|")), re.compile(shape)) for name, held, shape in _TABLE)
_EXCEPTION = re.compile(
    r"(?:E {1,8}|Uncaught |Caused by: |Exception in thread \"[^\"\n]{0,60}\" )?(?:\w{1,60}\.){0,10}"
    r"([A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Failure))(?:$|: )"
)
_EXCEPTION_WORDS: Final = ("Error", "Exception", "Interrupt", "Exit", "Failure")
_EXIT_CODE = re.compile(r"(-?\d{1,5})\D{0,10}$")


def error_kinds(lines: Sequence[str]) -> frozenset[str]:
    """The kinds of error among lines of output: names of exceptions, else of the table."""
    whole = "\n".join(lines)
    kinds = [
        (name, held, shape)
        for name, words, shape in _KINDS
        if (held := [word for word in words if word in whole])
    ]
    raised = any(word in whole for word in _EXCEPTION_WORDS)
    if not kinds and not raised:
        return frozenset()
    return frozenset(kind for line in lines if line and (kind := _kind(line[:_LONGEST], kinds, raised)))


def _kind(line: str, kinds: Sequence[tuple[str, Sequence[str], re.Pattern[str]]], raised: bool) -> str:
    if raised and (exception := _EXCEPTION.match(line)):
        return exception[1]
    for name, held, shape in kinds:
        if any(word in line for word in held) and shape.search(line):
            return name
    return ""


def exit_code_kind(command: str, lines: Sequence[str]) -> frozenset[str]:
    """`exit code` where a command prints `$?` and the last number it prints is not 0."""
    if "$?" not in command:
        return frozenset()
    codes = [found[1] for line in lines if (found := _EXIT_CODE.search(line[-40:]))]
    return frozenset({"exit code"} if codes and int(codes[-1]) else ())
