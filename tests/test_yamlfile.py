"""The two parsers behind `yamlfile.py`: libyaml, and the one in Python where a machine lacks that, read alike.

What a file may hold is tested with the files: `test_tasks.py`, `test_config.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from agentworldbench import yamlfile
from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError
from agentworldbench.resources import asset

PARSERS = {"Python": yaml.SafeLoader} | ({"libyaml": yaml.CSafeLoader} if yaml.__with_libyaml__ else {})
YAML_TEXTS = {
    "an alias inside itself": (
        "extra_body: &a {x: *a}\n",
        "nested too deeply, or an alias stands inside itself",
    ),
    "deep lists": ("extra_body: " + "[" * 20_000, "nested too deeply, or an alias stands inside itself"),
    "deep mappings": (
        "extra_body: " + "{a: " * 20_000,
        "nested too deeply, or an alias stands inside itself",
    ),
    "a bad indentation": ("seed: 1\n  limit: 2\n", "not valid YAML"),
    "a tab": ("seed:\t1\n\tlimit: 2\n", "not valid YAML"),
    "a control character": ("model: a\x07b\n", "not valid YAML"),
    "two documents": ("seed: 1\n---\nseed: 2\n", "not valid YAML"),
    "a key twice": ("seed: 1\nseed: 2\n", "key 'seed' stands twice"),
    "no known tag": ("model: !python/name:os.system x\n", "not valid YAML"),
}


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("name", YAML_TEXTS)
def test_either_parser_of_yaml_refuses_it_in_one_line(
    parser: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yamlfile, "_Loader", PARSERS[parser])
    text, message = YAML_TEXTS[name]
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"run\.yaml:[12]: {message}") as caught:
        make_config({}, tmp_path / "run.yaml")
    assert "\n" not in str(caught.value)


def test_both_parsers_of_yaml_read_the_bundled_files_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for folder in ("tasks", "leaderboards") for path in sorted(asset(folder).rglob("*.yaml"))]
    assert len(files) > 7
    texts = [path.read_text(encoding="utf-8") for path in files]
    texts += [
        "yes: 1\n2: {no: x, ~: y}\nbase: &b {1: a}\nmore: {<<: *b, k: [*b, *b]}\n",
        "a: |\n  x\n   y\nb: >\n  c\n  d\n",
    ]
    found = []
    for parser in PARSERS.values():
        monkeypatch.setattr(yamlfile, "_Loader", parser)
        found.append([yamlfile._read(text)[1] for text in texts])
    assert all(one == found[0] for one in found)
