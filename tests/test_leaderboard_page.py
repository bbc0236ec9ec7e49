"""The page's HTML, without a browser: what stands in it, that nothing is fetched, that names stay text, how large it is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.leaderboard.entries import Entry, entry_text, load_entries
from agentworldbench.leaderboard.page import page_text
from agentworldbench.leaderboard.tables import leaderboard_tables
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.chart import Point, frontier, scatter
from agentworldbench.render.shell import embedded_json, page
from tests.helpers.awb_command import HereAwb
from tests.helpers.board_entries import board, measured

VOID = {"meta", "link", "input", "br"}
HOSTILE = "</script></style></title><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}&lt;\u2028\x1b[31m\u202e\"'"


class Document(HTMLParser):
    """Tags with attributes, texts of cells, contents of scripts and styles; refuses tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.inside.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.inside[tag][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def data_of(document: Document) -> dict[str, Any]:
    (text,) = [text for text in document.inside["script"] if text.startswith('{"groups"')]
    data: dict[str, Any] = json.loads(text)
    return data


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return [*board(40), *load_entries()]


@pytest.fixture(scope="module")
def document(entries: list[Entry]) -> Document:
    return Document(page_text(entries))


def test_every_entry_stands_in_one_table_with_its_rank(document: Document, entries: list[Entry]) -> None:
    links = [row["href"] for row in document.all("a") if (row["href"] or "").startswith("#model=")]
    assert {f"#model={one.slug}" for one in entries} == set(links)
    assert len(document.all("tr")) == len(entries) + 5
    data = data_of(document)
    assert set(data["entries"]) == {one.slug for one in entries}
    for number in range(len(data["groups"])):
        some = [one for one in data["entries"].values() if one["g"] == number]
        ranked = sorted((one for one in some if "rank" in one), key=lambda one: one["rank"])
        assert [one["overall"] for one in ranked] == sorted((one["overall"] for one in ranked), reverse=True)
        assert [one["rank"] for one in ranked] == list(range(1, len(ranked) + 1))
    unranked = {slug for slug, one in data["entries"].items() if "rank" not in one}
    assert unranked == {one.slug for one in entries if not one.rankable} != set()


def test_groups_are_never_mixed(document: Document, entries: list[Entry]) -> None:
    data = data_of(document)
    for one in entries:
        facts = dict(data["groups"][data["entries"][one.slug]["g"]]["facts"])
        assert facts["Data"].startswith(one.group.data)
        assert facts["Protocol"].startswith(one.group.protocol)
        assert (one.group.judge or "none") in facts["Judge"]
    labels = [row["aria-label"] for row in document.all("div") if row.get("role") == "region"]
    assert len(set(labels)) == len(labels) == 5


def test_the_view_of_a_model_has_the_numbers_of_its_entry(document: Document) -> None:
    one = measured(5)
    shown = data_of(document)["entries"][one.slug]
    assert one.parse and one.policy and one.rules and one.costs and one.provenance
    reading = one.readings[one.parse]
    assert shown["scores"] == [round(score, 2) for score in one.scores.values()]
    for parse, both in shown["readings"].items():
        for policy, values in both.items():
            blocks = one.readings[parse].domains.values()
            assert values[2:] == [round(getattr(block, policy)["total"], 2) for block in blocks]
            assert values[1] == round(getattr(one.readings[parse].micro, policy)["total"], 2)
    mcp = reading.domains["mcp"]
    numbers = shown["dimensions"][1]
    for name, score, half in zip(DIMENSIONS, numbers[::2], numbers[1::2], strict=True):
        interval = mcp.dimension_intervals[name].floor
        assert interval is not None and interval.half is not None
        assert (score, half) == (round(mcp.floor[name] or 0, 1), round(interval.half, 1))
    assert shown["counts"][0] == [reading.domains["mcp"].scored, 310, 80]
    assert (
        data_of(document)["texts"][shown["run"]["harness"]]
        == f"0.1.0 ({(one.provenance.git_commit or '')[:12]})"
    )
    stage = shown["costs"]["stages"][0]
    assert stage[1] == one.costs.predictions.usage.prompt_tokens
    assert stage[5] == (
        None if one.costs.predictions.cost_usd is None else round(one.costs.predictions.cost_usd, 4)
    )


def test_nothing_is_fetched_and_only_its_own_scripts_run(document: Document) -> None:
    (policy,) = [row["content"] or "" for row in document.all("meta") if row.get("http-equiv")]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert (rules["base-uri"], rules["form-action"], rules["img-src"]) == ("'none'", "'none'", "data:")
    assert "unsafe" not in policy
    scripts = [
        text for text, row in zip(document.inside["script"], document.all("script"), strict=True) if not row
    ]
    for name, texts in (("script-src", scripts), ("style-src", document.inside["style"])):
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[name] == " ".join(f"'sha256-{one}'" for one in hashes)
    for tag, attributes in document.tags:
        assert tag not in ("iframe", "object", "embed", "base", "img")
        assert not {"src", "srcset", "style", "action"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
    assert [row["href"] for row in document.all("link")] == ["data:,"]
    css = document.inside["style"][0]
    assert "url(" not in css and "@import" not in css and "@font-face" not in css
    links = {row["href"] or "" for row in document.all("a")}
    assert all(one.startswith("#") for one in links)


def test_names_from_outside_stay_text() -> None:
    one = measured(7, name=HOSTILE, note=HOSTILE)
    data = json.loads(one.model_dump_json())
    data["provenance"]["predict"]["data"]["name"] = data["group"]["data"] = HOSTILE
    text = page_text([Entry.model_validate_json(json.dumps(data))], title=HOSTILE)
    document = Document(text)
    assert [tag for tag, _ in document.tags if tag == "img"] == []
    assert "{{ 7*7 }}" in document.inside["h1"][0], "a template is text, too"
    assert "49" not in document.inside["h1"][0]
    assert "\x1b" not in text and "\u202e" not in text
    (known,) = data_of(document)["entries"].values()
    assert known["name"].startswith("</script></style></title><img src=x")


def test_simulated_data_say_so() -> None:
    one = measured(3)
    assert one.provenance is not None
    data = one.provenance.predict.data.model_copy(update={"simulated": ("android",)})
    predict = one.provenance.predict.model_copy(update={"data": data})
    changed = one.model_copy(update={"provenance": one.provenance.model_copy(update={"predict": predict})})
    assert "<dt>Simulated</dt><dd>Android</dd>" in page_text([changed])
    (table,) = leaderboard_tables([changed])
    assert "Simulated, not recorded from a real environment: Android." in table.notes
    assert "Simulated" not in page_text([one])


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"</script>": "<!-- & --> \u2028"}
    text = str(embedded_json(value))
    assert not set("<>&") & set(text)
    assert json.loads(text) == value


def test_two_hundred_entries_are_under_half_a_megabyte() -> None:
    assert len(page_text(board(200)).encode()) < 500_000


def test_a_chart_only_where_cost_is_known(document: Document) -> None:
    assert len(document.all("figure")) == 3, "reported entries have no cost"
    assert "<figure" not in page_text(load_entries())
    svg = [row for row in document.all("svg") if row.get("class") == "chart"]
    assert {row["aria-label"] for row in svg} == {"Overall score by USD for 1,000 predictions (logarithmic)"}


def test_the_frontier_is_what_nothing_cheaper_surpasses() -> None:
    points = [Point(cost, score, None, None, name, "#") for cost, score, name in
              [(1, 50, "a"), (2, 40, "b"), (2, 60, "c"), (3, 60, "d"), (9, 61, "e"), (1, 45, "f")]]  # fmt: skip
    assert [one.name for one in frontier(points)] == ["a", "c", "e"]
    drawn = str(scatter(points, "across", "up"))
    assert drawn.count('class="best"') == 3
    assert drawn.count('class="dot"') == 3
    places = re.findall(r'<circle class="\w+" cx="([\d.]+)" cy="([\d.]+)"', drawn)
    assert all(52 <= float(x) <= 696 and 36 <= float(y) <= 318 for x, y in places)
    assert len({x for x, _ in places}) == 4


def test_one_point_has_axes_too() -> None:
    assert "NaN" not in str(scatter([Point(1.0, 0.0, -5.0, 5.0, "x" * 80, "#")], "across", "up"))


def test_a_value_that_a_template_lacks_is_an_error(tmp_path: Path) -> None:
    from jinja2 import UndefinedError

    for name, text in (
        ("x.html", '{% extends "shell.html" %}{% block main %}{{ nothing }}{% endblock %}'),
        ("x.css", ""),
        ("x.js", ""),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UndefinedError):
        page(tmp_path, "x", "title")
    assert "<p>b</p>" not in page(tmp_path, "x", "title", nothing="<p>b</p>")


def test_build_writes_the_same_bytes_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    folder = tmp_path / "board" / "entries"
    folder.mkdir(parents=True)
    for one in reversed(board(5)):
        (folder / f"{one.slug}.json").write_text(entry_text(one), encoding="utf-8")
    done = awb("leaderboard", "build", folder)
    assert (done.code, done.err) == (0, "")
    names = ["README.md", "entry.schema.json", "index.html"]
    assert [Path(line).name for line in done.out.splitlines()] == names
    assert sorted(path.name for path in folder.parent.iterdir() if path.is_file()) == sorted(names)
    assert awb("leaderboard", "build", folder, "--output", "site/deep").code == 0
    for name in names:
        assert (tmp_path / "site" / "deep" / name).read_bytes() == (folder.parent / name).read_bytes()
    assert awb("leaderboard", "build", folder, "-o", "site", "--title", "Ours <b>").code == 0
    assert "<h1>Ours &lt;b&gt;</h1>" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "--output is missing" in awb("leaderboard", "build").only_complaint
    done = awb("leaderboard", "build", folder, "-o", folder / f"{board(1)[0].slug}.json")
    assert (done.code, "cannot be written" in done.only_complaint) == (1, True)
