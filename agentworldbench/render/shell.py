"""The shell of every page that `awb` writes: head, policy, styles, the switch between light and dark, footer.

In: a template that fills the blocks of `shell/shell.html`, with styles and a script of its own. Out: HTML that works
from a disk and from any static host: `page` makes one file that asks nothing and names its styles and scripts by hash,
`Site` many pages that share theirs as files. Nothing else may run or be asked for, and Jinja2 escapes every text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentworldbench.render.sample import shown
from agentworldbench.texts import count_text
from agentworldbench.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

SHELL: Final = Path(__file__).parent / "shell"
_OWN: Final = "'self' file:"
"""The site's own files. On a disk browsers do not agree on what `'self'` is; on a host nothing may load `file:` anyway."""

_IN_SCRIPTS: Final = {ord(char): f"\\u{ord(char):04x}" for char in "&<>\u2028\u2029"}


def page(folder: Path, name: str, title: str, styles: Sequence[str] = (), **values: Any) -> str:
    """Render `<name>.html` of `folder` inside the shell, with `<name>.css` beside it, and `<name>.js` where there is one.

    `styles` names further styles of the shell; `values` are what the template asks for; a value that it asks for and does not get is an error.
    """
    from markupsafe import Markup

    css = "".join(map(_read, [*_sheets(styles), folder / f"{name}.css"]))
    own = folder / f"{name}.js"
    first, script = (
        _read(SHELL / "theme.js"),
        _read(SHELL / "shell.js") + (_read(own) if own.exists() else ""),
    )
    parts = {"css": Markup(css), "first_script": Markup(first), "script": Markup(script)}
    policy = _policy(_hash(css), f"{_hash(first)} {_hash(script)}")
    return _rendered(_environment(folder), name, title, policy, parts | values)


class Site:
    """Many pages that share one style sheet and one script, which stand beside them as files.

    `folder` holds the templates, `style.css` and `script.js`; further styles of the shell are named. The pages' policy
    allows the site's own files and nothing inline; browsers that read a site from a disk keep to it too. `served` pages
    come from a program of ours and may ask it, and nothing else.
    """

    def __init__(self, folder: Path, styles: Sequence[str] = (), served: bool = False) -> None:
        self._environment = _environment(folder)
        self.policy = SERVED if served else _policy(_OWN, _OWN)
        """What the pages may do."""
        self.files: dict[str, str] = {
            "style.css": "".join(map(_read, [*_sheets(styles), folder / "style.css"])),
            "theme.js": _read(SHELL / "theme.js"),
            "script.js": _read(SHELL / "shell.js") + _read(folder / "script.js"),
        }
        """What the pages ask for, by name: to be written where `root` leads."""

    def page(self, name: str, title: str, root: str = "", **values: Any) -> str:
        """Render `<name>.html`; `root` leads from the page to the site's files, for example `../`."""
        return _rendered(self._environment, name, title, self.policy, {"root": root} | values)


def _rendered(environment: Environment, name: str, title: str, policy: str, values: Mapping[str, Any]) -> str:
    template = environment.get_template(f"{name}.html")
    return template.render(title=shown(title), policy=policy, version=__version__, **values)


def _policy(styles: str, scripts: str) -> str:
    """What a page may do: use these styles and scripts, and nothing else."""
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def script_json(value: Any) -> str:
    """A value as JSON that can stand in any script: no text in it can end the element, begin a comment or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_IN_SCRIPTS)


SERVED: Final = _policy("'self'", "'self'") + "; connect-src 'self'"
"""What a page may do that a program of ours serves."""


def embedded_json(value: Any) -> Any:
    """`script_json` for a `<script type="application/json">` of a template."""
    from markupsafe import Markup

    return Markup(script_json(value))


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
    environment.filters["count_text"] = count_text
    environment.filters["count_text"] = count_text
    return environment


def _sheets(styles: Sequence[str]) -> list[Path]:
    """The shell's own style sheet, and further ones by name."""
    return [SHELL / f"{name}.css" for name in ("shell", *styles)]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a content security policy names an inline style or script."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
