"""Bundles that would make `awb verify` open what they name, or work for hours: neither happens.

The bundle is that of a baseline on rows of our own, so that all of it is made without a server.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.run import evaluate, score_run
from agentworldbench.submission.manifest import Options
from agentworldbench.submission.pack import prepare
from agentworldbench.verification.findings import Report
from agentworldbench.verification.verify import verify
from tests.helpers.honest_bundle import bundle_folder, edit_json, edit_lines, make_rows, seal, told

KEY = "sk-" + "Zq8Lw3Vn5Xt2Rb7Kd9Mf4Hs6"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows` and a `bundle`."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = make_rows(folder / "rows")
    evaluate(model="baseline/copy-last", data=str(rows), output=folder / "run")
    bundle_folder(folder / "run", folder / "bundle", rows)
    return folder


@pytest.fixture
def bundle(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home / "bundle", tmp_path / "bundle"))


@pytest.mark.parametrize("place", ["ROWS", "../rows", "hf:../../rows@" + "a" * 40, "hf:x/y@main"])
def test_a_path_that_a_bundle_names_is_never_read(home: Path, bundle: Path, place: str) -> None:
    """The data may lie where the bundle says: only the maintainer names a place."""
    told = (
        "no path out of a record is opened; --data FOLDER"
        if "../" in place or place == "ROWS"
        else "--data hf:x/y@COMMIT"
    )
    place = place.replace("ROWS", str(home / "rows"))

    def named(run: dict[str, Any]) -> None:
        run["selection"]["data"] = run["predict"]["data"]["name"] = place

    edit_json(bundle, "run.json", named)
    seal(bundle)
    report = verify(bundle)
    assert [one.check for one in report.unchecked] == ["data"]
    assert told in report.unchecked[0].why


@pytest.mark.parametrize(("epochs", "data"), [(1000, True), (1000, False), (10**9, True)])
def test_more_answers_than_there_are_cost_nothing(home: Path, bundle: Path, epochs: int, data: bool) -> None:
    edit_json(bundle, "run.json", lambda run: run.update(epochs=epochs))
    seal(bundle, lambda fields: fields.update(epochs=epochs))
    begun = time.process_time()
    report = verify(bundle, data=str(home / "rows") if data else None)
    assert (report.verdict, time.process_time() - begun < 3) == ("refused", True)
    assert f"run.json: {epochs:,} epochs w" in told(list(report.findings))


def of(report: Report, severity: str) -> list[str]:
    return [one.message for one in report.findings if (one.check, one.severity) == ("secrets", severity)]


def test_secrets_are_looked_for_without_the_data(home: Path, bundle: Path) -> None:
    def tell(lines: list[dict[str, Any]]) -> None:
        lines[0]["notes"] = [f"sent with {KEY}"]
        lines[1]["notes"] = ["ask jane.roe@uni-musterstadt.de"]

    edit_lines(bundle, "predictions.jsonl", tell)
    seal(bundle)
    without, there = verify(bundle), verify(bundle, data=str(home / "rows"))
    assert (without.verdict, there.verdict) == ("incomplete", "refused")
    assert of(without, "refused") == []
    told_without = of(without, "warning")
    assert len(told_without) == 2 and all("cannot be excluded" in one for one in told_without)
    assert of(there, "refused") == [
        "something that looks like a secret, and was not allowed by the submitter"
    ]
    assert of(there, "warning") == ["an e-mail address that was not allowed by the submitter"]
    assert "secrets" in there.checked and "secrets" not in without.checked


def test_addresses_are_allowed_together(home: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(home / "run", tmp_path / "run"))
    names = ("jane.roe", "john.doe")

    def tell(lines: list[dict[str, Any]]) -> None:
        for line, name in zip(lines, names, strict=False):
            line["notes"] = [f"ask {name}@uni-musterstadt.de"]

    edit_lines(run, "predictions.jsonl", tell)
    score_run(run, str(home / "rows"))
    for allow, left in (((), 2), (("e-mail",), 0)):
        folder = tmp_path / f"bundle{left}"
        folder.mkdir()
        made = prepare(
            run, folder, Options(reasoning=False, references=True), allow=allow, data=str(home / "rows")
        )
        assert (len(made.refused), len(made.manifest.allowed)) == (left, 2 - left)
    report = verify(folder, data=str(home / "rows"))
    assert (report.verdict, of(report, "info")) == (
        "accepted",
        ["a secret that the submitter published on purpose"],
    )
