"""Tests of the leaderboard: entries against the published tables, groups, ranks, and three formats.

The CSV files under `leaderboards/published` are the source; `tools/make_reported_entries` makes the
entries, and an entry file that it would write differently is stale.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import DataError
from agentworldbench.leaderboard.entries import Entry, Group, entry_text, grouped, load_entries, ranks
from agentworldbench.leaderboard.tables import leaderboard_tables, why_unranked
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.resources import asset
from tests.helpers.awb_command import HereAwb
from tools.make_reported_entries import entries as made_entries

ENTRIES = asset("leaderboards", "entries")
JUDGE = {
    "score": "judge", "data": "official", "data_revision": None, "data_sha256": None, "protocol": "paper",
    "prompts_sha256": None, "judge": "j", "judge_digest": None, "selection": "whole", "context_policy": None,
    "gui_diagnostics": False, "domains": (),
}  # fmt: skip
ANOTHER = {
    "score": "rules",
    "context_policy": "drop-oldest",
    "gui_diagnostics": True,
    "domains": ("mcp", "os"),
}
"""Values of the group's fields that are no free text."""
STRANGE = "a|b\\c`d`\n**e** <b>&amp;[x](y)\r\x1b[31m\u202ef"


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def published(name: str) -> list[dict[str, str]]:
    with asset("leaderboards", "published", name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def entry(model: str = "m", score: float = 50.0, coverage: float | None = 1.0, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "slug": f"measured-{model}",
        "model": model,
        "status": "measured",
        "group": JUDGE,
        "scores": {"swe": score, "os": score},
        "coverage": None if coverage is None else {"swe": 1.0, "os": coverage},
        "stated_overall": None,
        "computed_overall": score,
    }
    return Entry.model_validate(fields | changes)


def saved(folder: Path, *some: Entry) -> Path:
    folder.mkdir(exist_ok=True)
    for one in some:
        (folder / f"{one.slug}.json").write_text(one.model_dump_json(), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("score", "name", "rows"), [("judge", "judge_scores.csv", 16), ("rules", "rule_accuracy.csv", 15)]
)
def test_entries_equal_the_published_tables(score: str, name: str, rows: int) -> None:
    table = {row["model"]: row for row in published(name)}
    found = {one.model: one for one in load_entries() if one.group.score == score}
    assert len(table) == rows
    assert set(found) == set(table)
    for model, row in table.items():
        one = found[model]
        assert one.status == "reported"
        assert {f"{value:.2f}" for value in one.scores.values()} <= set(row.values())
        for domain in OFFICIAL_DOMAINS:
            assert f"{one.scores[domain]:.2f}" == row[domain]
        assert f"{one.stated_overall:.2f}" == row["stated_overall"]
        mean = sum(float(row[domain]) for domain in OFFICIAL_DOMAINS) / 7
        assert one.computed_overall == pytest.approx(mean, abs=0.005)
        assert one.coverage is None, "denominators are not published"
        assert one.source is not None
        assert one.group.judge == ("gpt-5.2-2025-12-11" if score == "judge" else None)
        assert (one.group.data_sha256, one.group.judge_digest) == (None, None), "not stated there"


def test_no_entry_is_stale() -> None:
    made = {f"{one.slug}.json": entry_text(one) for one in made_entries()}
    stored = {path.name: path.read_text(encoding="utf-8") for path in ENTRIES.glob("reported-*.json")}
    assert stored == made, "run: python -m tools.make_reported_entries"
    assert len(made) == 31


def test_the_one_overall_that_its_cells_do_not_give() -> None:
    noted = [one for one in load_entries() if one.note]
    assert [one.slug for one in noted] == ["reported-judge-qwen-agentworld-397b-a17b"]
    assert (noted[0].stated_overall, noted[0].computed_overall) == (58.71, 58.76)
    assert "58.71" in (noted[0].note or "")
    assert "58.76" in (noted[0].note or "")
    (table,) = leaderboard_tables([one for one in load_entries() if one.group.score == "judge"])
    assert table.rows[0][:5] == ("–", "Qwen-AgentWorld-397B-A17B*", "reported", "58.71", "58.76")
    assert any(note.startswith("* Qwen-AgentWorld-397B-A17B: ") for note in table.notes)


def test_the_two_published_tables_never_mix() -> None:
    judge, rules = leaderboard_tables(load_entries())
    assert (len(judge.rows), len(rules.rows)) == (16, 15)
    assert judge.title == "Judge scores — data official · protocol paper · judge gpt-5.2-2025-12-11"
    assert "judge gpt" not in rules.title
    assert rules.title.startswith("Rule accuracy — data paper's rule cases (not released)")


@pytest.mark.parametrize("field", list(JUDGE))
def test_any_other_field_of_the_group_makes_another_table(field: str) -> None:
    assert set(JUDGE) == set(Group.model_fields)
    both = [entry("a"), entry("b", 60.0, group=JUDGE | {field: ANOTHER.get(field, "other")})]
    assert [len(some) for _, some in grouped(both)] == [1, 1]
    never = field in ("selection", "context_policy", "gui_diagnostics")
    assert {some[0].model: ranks(some) for _, some in grouped(both)} == {
        "a": [1],
        "b": [None if never else 1],
    }
    first, second = leaderboard_tables(both)
    assert first.title != second.title


def test_whole_data_and_all_domains_come_first() -> None:
    named = {
        "some": JUDGE | {"domains": ("mcp",), "data_sha256": "00"},
        "all": JUDGE | {"data_sha256": "ff"},
        "subset": JUDGE | {"selection": "a part", "data_sha256": "00"},
        "rules": JUDGE | {"score": "rules"},
    }
    entries = [entry(name, group=group) for name, group in named.items()]
    assert [some[0].model for _, some in grouped(entries)] == ["all", "some", "subset", "rules"]


def test_no_reported_row_has_a_rank() -> None:
    for _, some in grouped(load_entries()):
        assert set(ranks(some)) == {None}


def test_ties_share_a_rank_and_the_next_rank_is_skipped() -> None:
    ((_, some),) = grouped([entry("d", 40), entry("b", 60), entry("c", 50), entry("a", 50)])
    assert [one.model for one in some] == ["b", "a", "c", "d"]
    assert ranks(some) == [1, 2, 2, 4]


@pytest.mark.parametrize(
    ("coverage", "rank"),
    [
        ({"swe": 1.0, "os": 1.0}, 1),
        ({"swe": 0.99, "os": 0.99}, 1),
        ({"swe": 1.0, "os": 0.9899}, None),
        ({"swe": 1.0}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_rank_needs_coverage_in_every_domain(coverage: dict[str, float] | None, rank: int | None) -> None:
    best = entry("best", 90.0, coverage=None).model_copy(update={"coverage": coverage})
    ((_, some),) = grouped([best, entry("second", 50.0)])
    assert ranks(some) == [rank, 1 if rank is None else 2], "a row without rank pushes nobody down"


def test_an_entry_says_why_it_has_no_rank() -> None:
    apart = {"selection": "70 samples", "gui_diagnostics": True, "domains": ("mcp", "os")}
    assert why_unranked(entry("a")) is None
    assert why_unranked(entry("b", coverage=0.5)) == "coverage below 99 % in OS"
    assert why_unranked(entry("c", coverage=None)) == "coverage is not disclosed"
    told = why_unranked(entry("d", group=JUDGE | apart))
    assert told == "a subset: 70 samples; GUI diagnostics added to the judge's prompts"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([10.0, 20.0, 20.001])), max_size=8),
    st.randoms(use_true_random=False),
)
def test_order_does_not_depend_on_input_order(rows: list[tuple[str, float]], shuffle: random.Random) -> None:
    some = [entry(model, score, slug=f"s{n}") for n, (model, score) in enumerate(rows)]
    other = list(some)
    shuffle.shuffle(other)
    assert grouped(some) == grouped(other)
    for _, ordered in grouped(some):
        found = ranks(ordered)
        assert found == sorted(found, key=lambda rank: rank or 0)
        assert found[0] == 1


def cells(line: str) -> int:
    """Cells of a Markdown row: pipes that are not escaped, less the outer one."""
    count, escaped = 0, False
    for char in line:
        count += char == "|" and not escaped
        escaped = char == "\\" and not escaped
    return count - 1


def test_markdown_keeps_its_columns(tmp_path: Path, awb: HereAwb) -> None:
    folder = saved(tmp_path / "lb", entry(STRANGE, slug="s", note=STRANGE, scores={"swe": 1.0, "x|y": 2.0}))
    done = awb("leaderboard", "show", folder, "--format", "md")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 3
    assert {cells(line) for line in table} == {8}
    assert lines[0].startswith("### Judge scores")
    assert not any(char in done.out for char in "\x1b\r\u202e")
    assert r"a\|b\\c\`d\`" in table[2]
    assert "<b>" not in table[2]


@given(st.text(min_size=1, max_size=40))
def test_no_model_name_breaks_a_markdown_row(name: str) -> None:
    (table,) = leaderboard_tables([entry(name, slug="s")])
    rows = [line for line in table.to_markdown().split("\n") if line.startswith("|")]
    assert {cells(line) for line in rows} == {len(table.columns)}
    assert len(rows) == 3


def test_the_text_table_shows_every_entry(awb: HereAwb) -> None:
    done = awb("leaderboard", "show")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("reported") == 31
    for row in published("judge_scores.csv"):
        assert row["model"] in done.out
        assert row["mcp"] in done.out


def test_json_holds_everything(awb: HereAwb) -> None:
    done = awb("leaderboard", "show", "--format", "json")
    shown = json.loads(done.out)
    assert (done.code, done.err, shown["schema_version"]) == (0, "", 2)
    assert [len(group["entries"]) for group in shown["groups"]] == [16, 15]
    stored = {one.slug: one for one in load_entries()}
    for group in shown["groups"]:
        for one in group["entries"]:
            assert one.pop("rank") is None
            assert Entry.model_validate(one) == stored[one["slug"]]
            assert one["group"] == group["group"]


def test_json_of_a_measured_entry_has_its_rank(tmp_path: Path, awb: HereAwb) -> None:
    folder = saved(tmp_path / "lb", entry("a", 10.0), entry("b", 20.0), entry("c", 30.0, coverage=0.5))
    shown = json.loads(awb("leaderboard", "show", folder, "-f", "json").out)
    assert [(one["model"], one["rank"]) for one in shown["groups"][0]["entries"]] == [
        ("c", None),
        ("b", 1),
        ("a", 2),
    ]


MALFORMED = {
    "cut": ('{"slug": "x"', "Invalid JSON"),
    "a list": ("[]", "Input should be an object"),
    "empty": ("", "Invalid JSON"),
    "missing field": ({"model": None}, "field 'model': Input should be a valid string"),
    "unknown field": ({"more": 1}, "field 'more': Extra inputs are not permitted"),
    "unknown status": ({"status": "claimed"}, "field 'status': Input should be 'measured', 'reported' or 'verified'"),
    "a text for a score": ({"scores": {"swe": "high"}}, "field 'scores.swe': Input should be a valid number"),
    "a score that is no number": ('{"scores": {"swe": NaN}}', "not a leaderboard entry"),
    "another schema": ({"schema_version": 1}, "field 'schema_version': Input should be 2; `awb leaderboard add RUN --force` makes it anew"),
    "no file name": ({"slug": "../x"}, "field 'slug': String should match pattern"),
    "no score": ({"scores": {}}, "field 'scores': Dictionary should have at least 1 item"),
    "another name": ({"slug": "y"}, "slug 'y' is not the file's name"),
    "not UTF-8": (b'{"slug": "\xff"}', "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_entry_is_one_clear_line(tmp_path: Path, awb: HereAwb, name: str) -> None:
    content, message = MALFORMED[name]
    if isinstance(content, dict):
        content = json.dumps(entry(slug="x").model_dump(mode="json") | content, indent=2)
    path = saved(tmp_path / "lb", entry("good")) / "x.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError):
        load_entries(path.parent)
    done = awb("leaderboard", "show", path.parent)
    assert done.code == 2
    assert done.only_complaint.startswith(f"awb: {path}:")
    assert message in done.complaint


def test_an_error_names_the_line(tmp_path: Path) -> None:
    text = entry(slug="x").model_dump_json(indent=2)
    path = tmp_path / "x.json"
    path.write_text(text.replace('"os": 50.0', '"os": "high"'), encoding="utf-8")
    number = next(n for n, line in enumerate(text.splitlines(), start=1) if '"os": 50.0' in line)
    with pytest.raises(DataError, match=f"x.json:{number}: not a leaderboard entry: field 'scores.os'"):
        load_entries(tmp_path)
    path.write_text(text.replace('"note": null', '"note": null,,'), encoding="utf-8")
    number = next(n for n, line in enumerate(text.splitlines(), start=1) if '"note": null' in line)
    with pytest.raises(DataError, match=f"x.json:{number}: not a leaderboard entry: Invalid JSON"):
        load_entries(tmp_path)


@given(st.text(min_size=1, max_size=60), st.floats(0, 100), st.none() | st.text(max_size=200))
def test_a_file_holds_what_the_entry_is(name: str, score: float, note: str | None) -> None:
    one = entry(name, score, slug="s", note=note)
    text = entry_text(one)
    assert Entry.model_validate_json(text) == one
    assert json.loads(text) == one.model_dump(mode="json")
    assert '"scores": {"swe": ' in text, "what fits stands on one line"
    assert text.endswith("\n}\n")


def test_an_empty_folder_is_refused(tmp_path: Path, awb: HereAwb) -> None:
    done = awb("leaderboard", "show", tmp_path)
    assert (done.code, "no leaderboard entry (*.json) in this folder" in done.only_complaint) == (2, True)
