"""Whether two names are those of one model.

In: a model string as a user or a record claims it, and the name under which a server answered. Out: whether the second can
be the first: providers add dates to names, routers leave out their own prefix, and some servers answer to any name at all.
"""

from __future__ import annotations

import re
from typing import Final

_TAIL: Final = re.compile(r"(-latest|-preview|:\w+)$")


def same_model(claimed: str, served: str) -> bool:
    """Whether a served name is that of the claimed model: equal, or one is the other with a date or version."""
    one, other = (_bare(name) for name in (claimed, served))
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _bare(name: str) -> str:
    return _TAIL.sub("", name.rpartition("/")[2].lower())
