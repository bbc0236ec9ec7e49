"""Text as it may be stored, and hashes of it: what every layer needs before it has a record."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal


def sha256_text(text: str) -> str:
    """Hex SHA-256 of the UTF-8 bytes of `text`."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes. Raises OSError when it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: Any) -> str:
    """Hex SHA-256 of the canonical JSON (sorted keys, no blanks) of a JSON-like value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return sha256_text(text)


def repeated_name(text: str | bytes) -> str | None:
    """A name that stands twice in one object of a JSON text: readers keep the first or the last, and say nothing. None
    where there is none, or the text is no JSON."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) < len(items):
            names = [name for name, _ in items]
            twice.append(next(name for name in names if names.count(name) > 1))
        return made

    try:
        json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None
    return twice[0] if twice else None


UTC_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
"""The form in which times are stored."""


def time_text(moment: datetime, timespec: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """A time in UTC as it is stored (RFC 3339), such as `2026-11-30T09:30:00Z`."""
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def moment(text: str) -> datetime | None:
    """A stored time, UTC where it names no zone; None where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def count_text(count: int, one: str, many: str | None = None) -> str:
    """A count with what is counted: `1 sample`, `2,170 samples`; `many` where that is not `one` with an s."""
    return f"{count:,} {one if count == 1 else f'{one}s' if many is None else many}"


def scrub(text: str) -> str:
    """`text` without lone surrogates: pairs are joined, single halves become U+FFFD.

    Such halves come from escaped JSON or from bytes decoded with `surrogateescape`; no HTTP body
    and no UTF-8 file can hold them. Valid text is returned as it is.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
