"""Where the texts of a data folder come from: its optional `provenance.json`.

In: a folder of data files. Out: one `Origin` a domain, empty where the folder has no such file. The
bundled set always has one; whoever records data of their own may write one too. A domain whose
environment was imitated by a program of the recorder is `simulated`: listings and results say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

FILE: Final = "provenance.json"


class Origin(BaseModel):
    """How one domain's rows came to be; `recorded` is a date, `programs` versions by name.

    `mapped` says what was changed on the way into the data, `volatile` what another recording words
    otherwise, `texts` whose the texts are. Fields of other programs are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["real", "simulated"]
    recorded: str = ""
    licence: str = ""
    how: str = ""
    programs: dict[str, str] = Field(default_factory=dict)
    mapped: str = ""
    volatile: str = ""
    texts: str = ""


class _Document(BaseModel):
    domains: dict[str, Any] = Field(default_factory=dict)


def read_origins(folder: Path) -> Mapping[str, Origin]:
    """Origins by domain. A file of that name in another form tells nothing, and so does its absence."""
    try:
        document = _Document.model_validate_json((folder / FILE).read_bytes())
        return {domain: Origin.model_validate(entry) for domain, entry in document.domains.items()}
    except (OSError, ValidationError):
        return {}
