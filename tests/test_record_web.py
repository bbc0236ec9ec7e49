"""The web rows: how elements get their numbers, the sites' rules, and that recording again gives the same.

In: `tools/record/browser`, the sites, and `agentworldbench/data/mini/web_test.jsonl`. The committed rows are
read back: every number in an action must stand in the last snapshot before it, or the server said
that it does not. Recording again needs what `tools/record/setup/web.sh` installs, and is skipped without.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from tools.record import common, compare
from tools.record.browser import client as web_client
from tools.record.browser.snapshot import ElementError, action_text, find_ref, snapshot_of, with_refs
from tools.record.sites.lending_desk import PAGE_SIZE, SIGN_IN_MINUTES, LendingDesk
from tools.record.sites.seed_shop import SeedShop
from tools.record.sites.server import Request, Site, data, serving, static_file
from tools.record.web import DOMAIN, SITES

ROOT = Path(__file__).resolve().parents[1]
PROMPTS = common.HERE / "prompts"

PAGE = r"""- generic [active] [ref=e1]:
  - banner [ref=e2]:
    - link "Basket (2)" [ref=e3] [cursor=pointer]:
      - /url: /basket
  - main [ref=e4]:
    - 'row "Sum: 3.90" [ref=e5]':
      - button "Remove" [ref=e6]
    - 'row "Gardener''s pea" [ref=e7]':
      - button "Remove" [ref=e8]
    - textbox "The \"best\" name" [ref=e9]: Ida
    - text: Name
    - alert
"""
ANSWER = "### Page\n- Page URL: http://a.example.com/\n### Snapshot\n```yaml\n{}\n```"


# Elements and actions.


NAMED = {
    'link "Basket (2)"': "e3",
    'link "Basket…"': "e3",
    "banner": "e2",
    'row "Sum: 3.90" > button "Remove"': "e6",
    'row "Gardener\'s…" > button "Remove"': "e8",
    "main > textbox": "e9",
    "e77": "e77",
}


@pytest.mark.parametrize("wanted", NAMED)
def test_an_element_is_found_by_role_and_name(wanted: str) -> None:
    assert find_ref(PAGE, wanted) == NAMED[wanted]


@pytest.mark.parametrize(
    "wanted", ['button "Remove"', 'link "Basket"', "alert", 'banner > button "Remove"', "Name!"]
)
def test_an_element_must_be_there_once_and_have_a_number(wanted: str) -> None:
    with pytest.raises(ElementError):
        find_ref(PAGE, wanted)


def test_an_action_is_written_with_the_real_numbers() -> None:
    fields = [{"name": "Basket", "type": "textbox", "ref": 'link "Basket…"', "value": "ä"}]
    call = with_refs({"ref": "banner", "submit": True, "fields": fields}, PAGE)
    assert action_text("browser_do", call) == (
        'browser_do(ref="e2", submit=true, fields=[{"name": "Basket", "type": "textbox", "ref": "e3", "value": "ä"}])'
    )
    assert action_text("browser_snapshot", {}) == "browser_snapshot()"


@pytest.mark.parametrize(
    ("observation", "found"),
    [
        (ANSWER.format(PAGE.rstrip()), PAGE),
        (ANSWER.format(""), None),
        ("### Error\nError: Ref e9 not found", None),
    ],
)
def test_the_snapshot_of_an_answer(observation: str, found: str | None) -> None:
    assert snapshot_of(observation) == found


# The sites.


def get(site: Site, path: str, **query: str) -> str:
    return site.answer(Request("GET", path, query, {}, "v1")).body


def post(site: Site, path: str, query: dict[str, str] | None = None, **form: str) -> str:
    """Send a form and follow the redirect; the page's text."""
    response = site.answer(Request("POST", path, query or {}, form, "v1"))
    target = urlsplit(response.headers.get("Location", ""))
    return get(site, target.path, **dict(parse_qsl(target.query))) if target.path else response.body


def signed_in() -> LendingDesk:
    desk = LendingDesk()
    assert "Tools 1 to 5 of 16" in post(desk, "/login", desk="east", pin="4471", next="/tools")
    return desk


LOANS = {
    "saved": ("T-06", "M-101", "14", "1", "T-06 is lent to M-101 until 20 March 2025."),
    "not in": ("T-12", "M-101", "7", "1", "T-12 is not in."),
    "no such member": ("T-06", "M-999", "7", "1", "There is no member with the number M-999."),
    "no member": ("T-06", "", "7", "1", "Enter a member number."),
    "two on loan": ("T-06", "M-107", "7", "1", "M-107 has 2 tools on loan already, which is the limit."),
    "too long": ("T-06", "M-101", "15", "1", "Days must be a whole number from 1 to 14."),
    "not a number": ("T-06", "M-101", "two", "1", "Days must be a whole number from 1 to 14."),
    "no deposit": ("T-06", "M-101", "7", "", "Take the deposit and tick the box."),
}


@pytest.mark.parametrize("case", LOANS)
def test_the_lending_desk_lends_by_its_rules(case: str) -> None:
    tool, member, days, deposit, message = LOANS[case]
    desk = signed_in()
    page = post(desk, "/loans/new", {"tool": tool}, member=member, days=days, deposit=deposit)
    assert message in page
    assert (tool in desk.loans) == (case == "saved")


def test_the_lending_desk_signs_out_after_ten_pages() -> None:
    desk = signed_in()
    for _ in range(SIGN_IN_MINUTES - 1):
        assert "Overdue tools" in get(desk, "/reports")
    response = desk.answer(Request("GET", "/reports", {}, {}, "v1"))
    assert response.headers["Location"] == "/login?next=%2Freports"
    assert "You were signed out after 10 minutes." in get(desk, "/login")


def test_the_lending_desk_extends_once_and_takes_a_late_fee() -> None:
    desk = signed_in()
    assert "T-03 is now due on 11 March 2025." in post(desk, "/tools/T-03/extend")
    assert "T-03 was extended before" in post(desk, "/tools/T-03/extend")
    assert "T-15 is back and goes to shelf yard. Late fee: 7 EUR." in post(
        desk, "/tools/T-15/return", condition="fine"
    )
    assert desk.answer(Request("GET", "/tools/T-15/return", {}, {}, "v1")).status == 404


def test_the_lending_desk_filters_and_pages() -> None:
    desk = signed_in()
    page = get(desk, "/tools", q="sander", sort="deposit")
    assert re.findall(r"/tools/(T-\d\d)", page) == ["T-06", "T-07", "T-16"]
    last = get(desk, "/tools", page="4")
    assert len(re.findall(r"/tools/(T-\d\d)", last)) == 16 % PAGE_SIZE
    assert "No tool fits." in get(desk, "/tools", q="kiln")


SUMS: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "small": ({"night-stock": "2"}, {"goods": 390, "discount": 0, "delivery": 390, "total": 780}),
    "voucher": ({"blue-flax": "5"}, {"goods": 1025, "discount": 103, "delivery": 390, "total": 1312}),
    "free": ({"marble-beet": "12"}, {"goods": 2520, "discount": 252, "delivery": 0, "total": 2268}),
}


@pytest.mark.parametrize("case", SUMS)
def test_the_seed_shop_adds_up(case: str) -> None:
    packets, sums = SUMS[case]
    shop = SeedShop()
    for slug, number in packets.items():
        assert f"is in your basket ({number})." in post(shop, f"/seeds/{slug}", packets=number)
    page = post(shop, "/voucher", code="spring10")
    assert ("SPRING10 needs goods of 10.00 EUR" in page) == (case == "small")
    assert shop._sums(shop.visits["v1"]) == sums


def test_the_seed_shop_keeps_to_its_stock_and_its_postcodes() -> None:
    shop = SeedShop()
    assert "Only 4 packets of Red Lantern tomato are left." in post(
        shop, "/seeds/red-lantern-tomato", packets="5"
    )
    post(shop, "/seeds/night-stock", packets="1")
    address: dict[str, Any] = {"name": "A", "street": "B", "town": "C", "terms": "1"}
    refused = post(shop, "/checkout", postcode="31250", delivery="parcel", **address)
    assert "No parcels go to 31250." in refused
    assert "Collect in Linden Hill" in post(
        shop, "/checkout", postcode="31250", delivery="collect", **address
    )
    assert "Not found" in get(shop, "/orders/5001")
    assert "Order 5001 has come in. Please pay 1.95 EUR on delivery." in post(shop, "/orders")
    assert "Your basket is empty." in get(shop, "/basket")


@pytest.mark.parametrize("path", ["/../data.yaml", "/data.yaml", "/base.txt", "/missing.css"])
def test_only_the_files_of_a_site_are_served(path: str) -> None:
    assert static_file("lending", path) is None


@pytest.mark.parametrize("name", SITES)
def test_a_site_is_served_on_loopback(name: str) -> None:
    with serving(SITES[name]()) as port:
        jar = HTTPCookieProcessor()
        opener = build_opener(jar)
        with opener.open(f"http://127.0.0.1:{port}/", timeout=10) as page:
            assert page.status == 200 and "<main>" in page.read().decode()
        assert [(cookie.name, cookie.value) for cookie in jar.cookiejar] == [("visitor", "v1")]
        if name != "lending":  # there, everything but the sign-in page is behind it
            with pytest.raises(HTTPError, match="404"):
                opener.open(f"http://127.0.0.1:{port}/nothing", timeout=10)


# What the world model is told is what the sites do.


def test_the_lending_prompt_holds_the_records() -> None:
    prompt, records = (PROMPTS / "web_lending.md").read_text(encoding="utf-8"), data("lending")
    for tool in records["tools"]:
        line = f"{tool['number']} {tool['name']}, {tool['category']}, {tool['deposit']}, {tool['shelf']}"
        assert line in prompt
    for number, name in records["members"].items():
        assert f"{number} {name}" in prompt
    assert set(re.findall(r"T-\d\d", prompt)) == {tool["number"] for tool in records["tools"]}


def test_the_seeds_prompt_holds_the_catalogue() -> None:
    prompt = (PROMPTS / "web_seeds.md").read_text(encoding="utf-8")
    for seed in data("seeds")["seeds"]:
        price = f"{seed['price'] // 100}.{seed['price'] % 100:02d}"
        assert f"{seed['name']}, {seed['kind']}, {seed['sow']}, {price}, {seed['left']}" in prompt


def test_the_courses_prompt_holds_the_courses() -> None:
    prompt = (PROMPTS / "web_courses.md").read_text(encoding="utf-8")
    script = static_file("courses", "/courses.js")
    assert script
    courses = [
        {key: text or number for key, text, number in re.findall(r'(\w+): (?:"([^"]*)"|(\d+))', line)}
        for line in script.body.splitlines()
        if line.startswith("  {")
    ]
    assert len(courses) == 9
    for course in courses:
        free = "full" if course["free"] == "0" else course["free"]
        assert (
            "{code} {title}, {level}, {day} {start} to {end}, {weeks} weeks, {fee}, ".format(**course)
            + f"{free}, {course['room']} ({course['bring']})"
        ) in prompt


# The committed rows.


@cache
def longest_rows() -> list[dict[str, Any]]:
    lines = (common.MINI / f"{DOMAIN}_test.jsonl").read_text(encoding="utf-8")[:-1].split("\n")
    return list({row["id"]: row for row in map(json.loads, lines)}.values())


def test_every_number_in_an_action_stands_in_the_last_snapshot() -> None:
    refs = 0
    for row in longest_rows():
        shown = snapshot_of(row["prompt"][0])
        assert shown
        for prompt, response in zip(
            [*row["prompt"][:-1], row["current_prompt"]], row["response"], strict=True
        ):
            action = prompt.rsplit("```\n", 2)[1]
            for ref in re.findall(r'"?ref"?[=:] ?"(e\d+)"', action):
                refs += 1
                assert (f"[ref={ref}]" in shown) != (f"Error: Ref {ref} not found" in response)
            shown = snapshot_of(response) or shown
    assert refs > 40


def test_the_addresses_are_those_of_the_sites() -> None:
    hosts = {site().host for site in SITES.values()}
    for row in longest_rows():
        text = "\n".join([row["system_str"], *row["prompt"], *row["response"]])
        assert set(re.findall(r"https?://([^/\s'\"]*)", text)) <= hosts


def test_the_rows_come_from_the_scripts() -> None:
    scripts = {common.row_id(DOMAIN, script["name"]): script for script in common.load_scripts(DOMAIN)}
    rows = {row["id"]: row for row in longest_rows()}
    assert rows.keys() == scripts.keys()
    for number, script in scripts.items():
        assert rows[number]["total_turns"] == len(script["turns"])
        assert f"**Task Instruction:**\n{script['task'].strip()}\n" in rows[number]["prompt"][0]


# The programs.


def test_what_is_missing_is_named_with_the_script_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CHROMIUM", "SERVER"):
        monkeypatch.setattr(web_client, name, tmp_path / "nothing")
        assert str(web_client.missing()).endswith(f"run {web_client.SETUP}")
    with pytest.raises(web_client.BrowserError, match=r"setup/web\.sh"):
        web_client.Browser("lending.example.com", 1)
    assert (ROOT / web_client.SETUP).is_file()


TRIES = """  - attempting click action
    {first}waiting for element to be visible, enabled and stable
      - <div class="overlay">…</div> intercepts pointer events
    - retrying click action
"""


@pytest.mark.parametrize("first", ["2 × ", "- "])
@pytest.mark.parametrize(
    "more",
    [
        "    - waiting 20ms",
        "      - waiting 500ms\n    - waiting for element to be visible, enabled and stable",
        "    - waiting 20ms\n    9 × waiting for element to be visible, enabled and stable\n"
        "    - retrying click action\n      - waiting 500ms",
    ],
)
def test_of_an_action_tried_again_the_first_try_is_compared(first: str, more: str) -> None:
    """How often there is time for another, and where the last one is cut, is the machine's affair."""
    text = TRIES.format(first=first) + more + "\n```\n- button [ref=e1]"
    assert compare.mask(text) == TRIES.format(first="- ")[:-1] + " <AND AGAIN>\n```\n- button [ref=e1]"


def test_log_times_are_masked_in_a_comparison_and_other_counts_are_not() -> None:
    text = "- console-2026-11-30T00-17-15-561Z.log#L1\n2 × Night stock"
    assert compare.mask(text) == "- console-<TIME>.log#L1\n2 × Night stock"


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(900)
def test_recording_again_gives_the_same(tmp_path: Path) -> None:
    if reason := web_client.missing():
        pytest.skip(reason)
    command = [sys.executable, "-m", "tools.record.web", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    changed = compare.difference(common.MINI / "web_test.jsonl", tmp_path / "web_test.jsonl")
    assert not changed, "\n".join(changed)
