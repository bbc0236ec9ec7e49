"""One spelling for all spellings of a page's address, so that URLs can be compared.

What RFC 3986 calls normalisation (section 6.2: case of scheme, host and escapes, escapes of unreserved
characters, dot segments, default ports, empty paths) leaves the meaning of a URL alone. What goes further
is what search engines do with two spellings of one page: http and https, `www.`, a slash at the end, the
order of the query, parameters that only tell where a visitor came from, and fragments (except routes of a
page that is one program: `#/…`, `#!…`) make no difference. A name of the host in punycode is written out.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

# RFC 3986, appendix B; a scheme only before `//`, for `localhost:8000/x` has none.
_PARTS: Final = re.compile(
    r"(?:(?:([a-z][a-z0-9+.-]{0,20}):)?//)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?",
    re.IGNORECASE | re.DOTALL,
)
_PORT: Final = re.compile(r":(\d*)\Z")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_KEPT: Final = "%!$&'()*+,;=:@/?#[]"
"""Reserved characters, and the sign that begins an escape: what quoting must leave alone."""
_UNSAFE: Final = re.compile(rf"[^A-Za-z0-9\-._~{re.escape(_KEPT)}]")
_PORTS: Final = {"http": "80", "https": "443"}
_LONGEST_LABEL: Final = 63

TRACKING: Final = frozenset(
    name
    for line in (
        "gclid gclsrc gbraid wbraid dclid fbclid msclkid yclid twclid ttclid igshid igsh mc_cid mc_eid mkt_tok",
        "_ga _gl _hsenc _hsmi srsltid spm scm vd_source vero_id oly_anon_id oly_enc_id",
    )
    for name in line.split()
)
"""Query parameters that tell where a visitor came from; so do all that begin with `utm_`."""


class Address(NamedTuple):
    """`url`: the one spelling, without the scheme when it is http(s); `host`: without `www.` and port."""

    url: str
    host: str


def address(url: str) -> Address:
    """The page that a URL names: `host[:port]/path[?query][#route]`."""
    parts = _PARTS.match(url.strip().strip("<>"))
    assert parts is not None, "every part may be empty"
    scheme, authority, path, query, fragment = (part or "" for part in parts.groups())
    scheme = scheme.lower()
    host, port = _authority(authority)
    found = host + (f":{port}" if port not in {"", _PORTS.get(scheme)} else "") + _path(path)
    if wanted := sorted(part for part in _escaped(query).split("&") if part and not _tracks(part)):
        found += "?" + "&".join(wanted)
    if fragment[:1] in {"/", "!"}:
        found += "#" + _escaped(fragment)
    return Address(found if not scheme or scheme in _PORTS else f"{scheme}://{found}", host)


def _authority(authority: str) -> tuple[str, str]:
    """Host in small letters without `www.`, port or nothing; who logs in is left out."""
    host = unquote(authority.rpartition("@")[2]).lower().replace("\u3002", ".")
    port = _PORT.search(host)
    if port is not None:
        host = host[: port.start()]
    host = ".".join(_label(label) for label in host.strip(".").split("."))
    if host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    return host, port[1] if port else ""


def _label(label: str) -> str:
    """A label of a host name, written out where it is punycode (RFC 3492)."""
    if not label.startswith("xn--") or len(label) > _LONGEST_LABEL:
        return label
    try:
        return label[4:].encode("ascii").decode("punycode").lower()
    except UnicodeError:
        return label


def _path(path: str) -> str:
    """Without dot segments (RFC 3986, 5.2.4) and without a slash at the end; never empty."""
    kept: list[str] = []
    for part in _escaped(path).split("/"):
        if part == "..":
            del kept[max(1, len(kept) - 1) :]
        elif part != ".":
            kept.append(part)
    return "/".join(kept).rstrip("/") or "/"


def _escaped(text: str) -> str:
    """All that must be escaped is, in capitals, and nothing that need not be."""
    plain = quote(text, safe=_KEPT, errors="surrogatepass") if _UNSAFE.search(text) else text
    return _ESCAPE.sub(_escape, plain) if "%" in plain else plain


def _escape(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else f"%{match[1].upper()}"


def _tracks(part: str) -> bool:
    name = part.partition("=")[0].lower()
    return name in TRACKING or name.startswith("utm_")
