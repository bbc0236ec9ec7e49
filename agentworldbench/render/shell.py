"""The shell of every page that `awb` writes: head, policy, styles, the switch between light and dark, footer.

In: a template that fills the blocks of `shell/shell.html`, with styles and a script of its own. Out: one HTML file
that works from a disk and from any static host: nothing is fetched, nothing but the page's own styles and scripts
may run (the policy names them by hash), and Jinja2 escapes every text. Templates, styles and scripts are package files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentworldbench.render.sample import shown
from agentworldbench.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

SHELL: Final = Path(__file__).parent / "shell"


def page(folder: Path, name: str, title: str, **values: Any) -> str:
    """Render `<name>.html` of `folder` inside the shell, with `<name>.css` and `<name>.js` beside it.

    `values` are what the template asks for; a value that it asks for and does not get is an error.
    """
    from markupsafe import Markup

    css = _read(SHELL / "shell.css") + _read(folder / f"{name}.css")
    first, script = _read(SHELL / "theme.js"), _read(SHELL / "shell.js") + _read(folder / f"{name}.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(css)}",
            f"script-src {_hash(first)} {_hash(script)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        _environment(folder)
        .get_template(f"{name}.html")
        .render(
            title=shown(title),
            policy=policy,
            css=Markup(css),
            first_script=Markup(first),
            script=Markup(script),
            version=__version__,
            **values,
        )
    )


def embedded_json(value: Any) -> Any:
    """A value as JSON that can stand in a `<script type="application/json">`: no text in it can end the element."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, SHELL]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    return environment


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a content security policy names an inline style or script."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
