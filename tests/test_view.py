"""`awb view` over loopback: a finished run, a list of runs, the command; and what no browser may be led to.

The run is a small one of two domains with a judge and failures of both stages. Runs under way are in `test_view_live.py`,
the pages in a browser in `test_view_browser.py`.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.cli.view import _site
from agentworldbench.report import serve
from agentworldbench.report.build import build_report
from agentworldbench.report.folder_site import FolderSite
from agentworldbench.report.names import page_name
from agentworldbench.run import Run
from agentworldbench.run_list import run_paths
from tests.helpers.awb_command import HereAwb
from tests.helpers.report_pages import HOSTILE_ID, Page
from tests.helpers.viewing import Viewed, grown, page_of, served, small_run, viewed

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; connect-src 'self'"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("played"))


@pytest.fixture(scope="module")
def finished(run: Run) -> Iterator[Viewed]:
    with viewed(run.path) as found:
        found.until(lambda told: told["looked"])
        yield found


# --- a finished run ------------------------------------------------------------------------------


def test_the_pages_are_those_of_the_report(run: Run, finished: Viewed, tmp_path: Path) -> None:
    """But for what is live: the same files, the same list, the same words on every page of a sample."""
    report = build_report([run.path], tmp_path / "report").index.parent
    for path in sorted(one for one in report.rglob("*") if one.is_file()):
        name = str(path.relative_to(report))
        if name == "report.json":
            continue
        if path.suffix == ".png":
            same = path.stem != "domains" or finished.ask(f"/{name}")[2] == path.read_bytes()
            assert same, name  # one of them: they take long
            continue
        text = finished.text(f"/{name}")
        if path.suffix == ".html":
            words = page_of(text, tmp_path).text.split()
            wanted = Page(path).text.partition("These pages ask")[0].split()
            left = iter(words)
            assert all(word in left for word in wanted), f"{name}: something is missing, or stands elsewhere"
        elif name != "style.css":
            assert text == path.read_text(encoding="utf-8"), name
    assert "live.js" not in (report / "index.html").read_text()
    assert not (report / "live.js").exists()


def test_a_finished_run_says_so(run: Run, finished: Viewed) -> None:
    told = finished.told()
    assert run.results is not None
    predictions, verdicts = told["stages"]
    assert (told["state"], told["worker"], told["run"]) == ("finished", None, "run")
    assert predictions["done"] == predictions["total"] == sum(run.results.predictions.samples.values())
    assert predictions["failures"] == {
        kind: sum(some.get(kind, 0) for some in run.results.predictions.failures.values())
        for kind in predictions["failures"]
    }
    assert predictions["failed"] == sum(predictions["failures"].values()) > 0
    assert verdicts["failed"] == sum(one.failure is not None for one in run.verdicts()) > 0
    assert verdicts["total"] == verdicts["done"] == run.results.judges[0].spent.records
    assert {one["domain"]: one["done"] for one in told["domains"]} == run.results.predictions.samples
    spent = [run.results.predictions.spent, run.results.judges[0].spent]
    assert told["prompt_tokens"] == sum(one.usage.prompt_tokens or 0 for one in spent)
    assert told["scored"] == predictions["total"] and told["problem"] is None
    assert told["last_failures"] and told["seconds_left"] is None


def test_every_answer_carries_what_a_browser_must_know(run: Run, finished: Viewed) -> None:
    sample = f"/samples/{page_name(HOSTILE_ID)}.html"
    for path in ("/", "/samples.html", sample, "/list.js", "/progress.json", "/live.js", "/nothing"):
        status, headers, body = finished.ask(path)
        assert status == (404 if path == "/nothing" else 200)
        assert headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Server"] == "awb" and "Set-Cookie" not in headers
        assert finished.ask(path, "HEAD")[1]["Content-Length"] == headers["Content-Length"]
        assert finished.ask(path, "HEAD")[2] == b"" != body
    found = finished.text(sample)
    assert f'content="{POLICY.replace(chr(39), "&#39;")}"' in found
    assert "<script>document" not in found and "\u202e" not in found


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
def test_only_reading_is_answered(finished: Viewed, method: str) -> None:
    status, headers, body = finished.ask("/", method)
    assert status in (405, 501) and b"<" not in body
    assert headers["Connection"] == "close"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9999", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:7870", 200),
        ("127.1.2.3", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:7870", 421),
        ("192.168.0.7", 421),
        ("[::1", 200),
        ("", 421),
        ("user@localhost", 421),
    ],
)
def test_a_name_that_is_not_this_machine_is_refused(finished: Viewed, host: str, status: int) -> None:
    """DNS rebinding: a page of others gives its own name this machine's address."""
    found = finished.ask("/progress.json", Host=host)
    assert found[0] == status
    assert status == 200 or b"stages" not in found[2]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/../run.json", 404),
        ("/run.json", 404),
        ("/predictions.jsonl", 404),
        ("/samples/../../run/run.json", 404),
        ("/%2e%2e/run.json", 404),
        ("/..%2frun.json", 404),
        ("/samples/", 404),
        ("/samples", 404),
        ("/plots/../style.css", 404),
        ("/plots/.svg", 404),
        ("/plots/../run.png", 404),
        ("/samples/%00.html", 404),
        ("/samples/<script>.html", 404),
        ("/search-.js", 404),
        ("/search-mcp.js", 404),
        ("/trajectories/x.js", 404),
        ("//evil.example/", 404),
        ("http://evil.example/", 421),
        ("/%ff", 400),
        ("/progress.json?page=../x", 200),
        ("/?" + "&".join("a=1" for _ in range(99)), 400),
    ],
)
def test_a_path_is_a_name_that_is_known_or_nothing(finished: Viewed, path: str, status: int) -> None:
    found = finished.ask(path)
    assert found[0] == status
    assert status == 200 or b"<" not in found[2], "a refusal repeats nothing and is plain text"


# --- several runs --------------------------------------------------------------------------------


def test_a_folder_lists_its_runs(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "runs & <more>"
    folder.mkdir()
    shutil.copytree(run.path, folder / "a run #1")
    grown(run.path, folder / "<b>", 2, 0)
    (folder / "notes").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text("{")
    with served(FolderSite(lambda: run_paths(folder), folder, None, False)) as found:
        listed = page_of(found.text("/"), tmp_path)
        links = [str(one["href"]) for one in listed.all("a") if str(one.get("href")).endswith("/")]
        assert sorted(links) == ["%3Cb%3E/", "a%20run%20%231/"]
        assert "not finished" in listed.text and "finished" in listed.text and "broken" in listed.text
        status, headers, _ = found.ask("/a%20run%20%231")
        assert (status, headers["Location"]) == (302, "/a%20run%20%231/")
        below = found.text("/a%20run%20%231/")
        assert 'href="../index.html"' in below and 'src="live.js"' in below
        assert found.told("/%3Cb%3E/progress.json")["stages"][0]["done"] == 2
        told = found.told()
        assert {Path(one["path"]).name for one in told["runs"]} == {"a run #1", "<b>", "broken"}
        grown(run.path, folder / "<b>", 4, 0)
        assert [one["done"] for one in found.told()["runs"] if one["path"].endswith("<b>")] == [4]
        for path in ("/notes/", "/../", "/a%20run%20%231/../<b>/progress.json", "/list.js", "/samples.html"):
            assert found.ask(path)[0] == 404


def test_a_linked_run_is_shown_once_and_nothing_outside_of_the_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(run.path, folder / "here")
    (folder / "again").symlink_to("here")
    (folder / "out").symlink_to(run.path)
    with served(_site([folder], None, False)) as found:
        assert [Path(one["path"]).name for one in found.told()["runs"]] == ["here"]
        assert found.ask("/here")[0] == 302
        assert {found.ask(f"/{name}")[0] for name in ("again", "out")} == {404}
        assert (
            f"leads out of the folder: {folder / 'out'}; name it" in page_of(found.text("/"), tmp_path).text
        )
    with served(_site([folder / "here", folder / "out"], None, False)) as found:
        assert len(found.told()["runs"]) == 2, "both were named"


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("name", "host", "ours"),
    [
        ("192.168.0.7:7870", "0.0.0.0", True),
        ("[2001:db8::7]:7870", "::", True),
        (f"{socket.gethostname()}:7870", "0.0.0.0", True),
        ("localhost:7870", "0.0.0.0", True),
        ("evil.example", "0.0.0.0", False),
        ("lab.example:7870", "lab.example", True),
        ("192.168.0.7", "::1", False),
    ],
)
def test_a_server_that_is_open_to_others_answers_to_its_addresses(name: str, host: str, ours: bool) -> None:
    assert serve.names_us(name, host) is ours


def test_what_the_command_says(
    awb: HereAwb, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(server: serve.Server, poll_interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serve.Server, "serve_forever", interrupted)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(serve, "PORT", port)
        done = awb("view", run.path)
        first, last = done.err.splitlines()
        assert (
            first.startswith(f"Port {port} is in use; this is ")
            and last == "Ctrl-C ends this; the runs go on."
        )
        assert (done.code, done.out) == (130, f"http://127.0.0.1:{first.split()[-1][:-1]}/\n")
    monkeypatch.setattr(serve, "is_loopback", lambda host: False)
    done = awb("view", tmp_path, "--port", "0", "--host", "localhost")
    assert done.err.startswith("Warning: everybody who reaches port ") and done.out.startswith(
        "http://localhost:"
    )


def test_what_the_command_refuses(awb: HereAwb, run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = awb("view", run.path, "--port", str(port))
        assert done.code == 2 and f"--port {port}: in use by another program" in done.only_complaint
    done = awb("view", run.path, "--host", "203.0.113.7", "--port", "0")
    assert done.code == 2 and "--host 203.0.113.7: cannot listen there" in done.only_complaint
    done = awb("view", tmp_path / "nothing")
    assert done.code == 2 and "no such folder" in done.only_complaint
    done = awb("view", run.path, tmp_path)
    assert done.code == 2 and "no run.json there" in done.only_complaint
    done = awb("view", run.path, run.path)
    assert done.code == 2 and "named twice" in done.only_complaint
