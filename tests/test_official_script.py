"""The official script's two files: read, matched to samples, imported, exported.

The files in `cases/official_script` were written by the official script itself, on data that
`tests/helpers/official_folder.py` makes, and so were the numbers in `printed.json`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.integrations.official_export import export_run
from agentworldbench.integrations.official_import import import_file
from agentworldbench.integrations.official_matching import Place, match, places_of
from agentworldbench.integrations.official_script import TEXTS, script_results, stored_run
from agentworldbench.records import FailureKind
from agentworldbench.run import evaluate, load_run, score_run
from agentworldbench.sources import resolve_source
from agentworldbench.task import load_tasks
from tests.helpers.official_folder import make_official_folder

CASES = Path(__file__).parent / "cases" / "official_script"
PREDICTIONS = CASES / "predictions.jsonl"
JUDGED = CASES / "judged.jsonl"
PRINTED = json.loads((CASES / "printed.json").read_text(encoding="utf-8"))
REFUSED = yaml.safe_load((CASES / "refused.yaml").read_text(encoding="utf-8"))
MATCHING = yaml.safe_load((CASES / "matching.yaml").read_text(encoding="utf-8"))
TASKS = load_tasks()


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def write_rows(path: Path, rows: list[Any]) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape"))
    return path


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in row if name not in names}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data that the files were made with."""
    folder = tmp_path_factory.mktemp("official") / "data"
    make_official_folder(
        folder, seed=4, domains=("terminal", "android"), trajectories=1, turns=3, observation_chars=60
    )
    return folder


@pytest.fixture(scope="module")
def dataset(data: Path) -> Dataset:
    source = resolve_source(str(data))
    return open_dataset(source.files, source.tasks)


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines that were told; the working directory is the test's own."""
    monkeypatch.chdir(tmp_path)
    return []


def printed(run: Path) -> dict[str, Any]:
    """What our official reading says, in the form of `printed.json`."""
    results = load_run(run).results
    assert results is not None
    (judge,) = results.judges
    domains = {}
    for name, block in judge.official.domains.items():
        scores = {"total_score" if key == "total" else key: value for key, value in block.exclude.items()}
        rounded = {key: round(value, 2) for key, value in scores.items() if value is not None}
        domains[name] = {"valid": block.scored, "rows": block.samples, **rounded}
    overall = judge.official.micro.exclude["total"]
    assert overall is not None
    return {"domains": domains, "overall": round(overall, 2)}


@pytest.mark.parametrize("name", REFUSED)
def test_a_line_that_cannot_be_read(tmp_path: Path, said: list[str], name: str) -> None:
    case = REFUSED[name]
    rows: list[Any] = rows_of(JUDGED if case.get("judged") else PREDICTIONS)
    changed = {**without(rows[1], *case.get("drop", ())), **case.get("set", {})}
    rows[1] = case.get("line", changed)
    file = write_rows(tmp_path / "theirs.jsonl", rows)
    with pytest.raises(DataError) as refused:
        import_file(file, said.append)
    assert f"{file}:2: " in str(refused.value)
    assert case["message"] in str(refused.value)
    assert sorted(tmp_path.iterdir()) == [file], "nothing was begun"


def test_an_empty_file_and_a_list(tmp_path: Path, said: list[str]) -> None:
    empty = write_rows(tmp_path / "empty.jsonl", ["", " "])
    for use in (stored_run, lambda path: import_file(path, said.append)):
        with pytest.raises(DataError, match="holds no rows"):
            use(empty)
    with pytest.raises(DataError, match="write one object a line"):
        stored_run(write_rows(tmp_path / "list.jsonl", ["[{}]"]))


def changed_rows(case: dict[str, Any]) -> list[dict[str, Any]]:
    rows = rows_of(PREDICTIONS)
    bare = range(1, len(rows) + 1) if case.get("bare") == "all" else case.get("bare", ())
    rows = [without(row, *TEXTS) if line in bare else row for line, row in enumerate(rows, start=1)]
    rows = [row | case.get("set", {}).get(line, {}) for line, row in enumerate(rows, start=1)]
    rows += [rows[line - 1] for line in case.get("repeat", ())]
    rows = [row for line, row in enumerate(rows, start=1) if line not in case.get("drop", ())]
    return rows[::-1] if case.get("order") == "reversed" else rows


def right(
    places: list[Place], pairs: list[tuple[Place, Any]], rows: list[dict[str, Any]], data: Dataset
) -> bool:
    """Whether each matched line belongs to its sample: by the texts of the row that it was made from."""
    whole = {(row["gen"], row["task"], str(row["id"]), row["turn_idx"]): row for row in rows_of(PREDICTIONS)}
    for place, ref in pairs:
        row = rows[place.line - 1]
        made_from = whole[row["gen"], row["task"], str(row["id"]), row["turn_idx"]]
        if data.load(ref).responses != tuple(made_from["response"][: row["turn_idx"]]):
            return False
    return True


@pytest.mark.parametrize("name", MATCHING)
def test_lines_find_their_samples(tmp_path: Path, dataset: Dataset, name: str) -> None:
    case = MATCHING[name]
    rows = changed_rows(case)
    places = list(places_of(write_rows(tmp_path / "theirs.jsonl", rows), TASKS))
    found = match(places, dataset)
    told = list(found.told("theirs.jsonl"))
    assert len(found.pairs) == case["matched"]
    assert len(told) == len(case["told"]), told
    assert all(part in line for part, line in zip(case["told"], told, strict=True)), told
    assert len(found.pairs) + sum(map(len, found.left.values())) == len(rows), "no line is lost in silence"
    assert right(places, found.pairs, rows, dataset)


@given(st.permutations(range(26)), st.integers(1, 26), st.sets(st.integers(0, 25)))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_is_ever_given_to_a_wrong_sample(
    tmp_path: Path, dataset: Dataset, order: list[int], count: int, bare: set[int]
) -> None:
    all_rows = rows_of(PREDICTIONS)
    chosen = [without(all_rows[at], *TEXTS) if at in bare else all_rows[at] for at in order[:count]]
    pair = [row["gen"] for row in chosen if (row["task"], row["id"], row["turn_idx"]) == ("android", 7, 3)]
    places = list(places_of(write_rows(tmp_path / "theirs.jsonl", chosen), TASKS))
    found = match(places, dataset)
    in_order = pair == [row["gen"] for row in all_rows if (row["id"], row["turn_idx"]) == (7, 3)]
    both_bare = sum("prompt" not in row for row in chosen if (row["id"], row["turn_idx"]) == (7, 3)) == 2
    if in_order or not both_bare:  # two lines without texts can be told apart by their order alone
        assert right(places, found.pairs, chosen, dataset)
    assert len({ref.id for _, ref in found.pairs}) == len(found.pairs)
    assert found.without == 26 - len(found.pairs)


@pytest.mark.parametrize("named", [False, True], ids=["rows of the file", "data named"])
def test_an_imported_file_says_what_the_script_printed(
    tmp_path: Path, said: list[str], data: Path, named: bool
) -> None:
    run = import_file(JUDGED, said.append, tmp_path / "run", str(data) if named else None)
    results = score_run(run).results
    assert results is not None
    assert results.complete
    assert printed(run) == PRINTED
    assert len(said) == 1, "two lines with one id and turn, and nothing else"
    rows = rows_of(JUDGED)
    assert sorted(prediction.text or "" for prediction in load_run(run).predictions()) == sorted(
        row["gen"] for row in rows
    )
    assert (run / "imported" / "android_test.jsonl").exists() is not named
    assert results.predict.data.name == ("folder data" if named else "folder imported")


def test_the_rows_of_a_file_are_the_data_byte_for_byte(tmp_path: Path, said: list[str], data: Path) -> None:
    run = import_file(PREDICTIONS, said.append)
    for name in ("android_test.jsonl", "terminal_test.jsonl"):
        assert (run / "imported" / name).read_bytes() == (data / name).read_bytes()


def test_what_the_file_does_not_say_stays_unknown(tmp_path: Path, said: list[str]) -> None:
    run = load_run(import_file(JUDGED, said.append))
    (judge,) = run.record.judges
    assert (judge.model, judge.attempts, judge.min_output) == ("unknown (judged.jsonl)", None, None)
    assert (judge.sampling, judge.prompts, set(judge.system_prompts.values())) == ({}, {}, {None})
    verdicts = list(run.verdicts())
    assert len(verdicts) == sum(bool(row["gen"]) for row in rows_of(JUDGED)) == 22
    for verdict in verdicts:
        asked = (verdict.prompt_sha256, verdict.system_sha256, verdict.started_at, verdict.finish_reason)
        assert asked == (None, None, None, None)
        assert (verdict.seconds, verdict.cost_usd, verdict.model_served) == (None, None, None)
    unknown = [one.failure for one in verdicts if one.failure and one.failure.kind is FailureKind.UNKNOWN]
    assert [one.message for one in unknown] == ["the file says that judging failed, not why (no verdict)"] * 4
    assert {prediction.finish_reason for prediction in run.predictions()} == {None}


def test_importing_again_changes_nothing(tmp_path: Path, said: list[str]) -> None:
    run = import_file(JUDGED, said.append)
    score_run(run)
    before = {path: path.read_bytes() for path in sorted(run.rglob("*.jsonl"))}
    again = import_file(JUDGED, said.append)
    assert again == run
    assert {path: path.read_bytes() for path in sorted(run.rglob("*.jsonl"))} == before
    assert printed(score_run(run).path) == PRINTED


def test_a_directory_that_holds_something_else(tmp_path: Path, said: list[str], data: Path) -> None:
    run = import_file(PREDICTIONS, said.append, tmp_path / "run")
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    shorter = write_rows(tmp_path / "shorter.jsonl", rows_of(PREDICTIONS)[:5])
    for file, named in ((shorter, None), (PREDICTIONS, str(data))):
        with pytest.raises(ConfigError, match="holds the import of another file or with other data"):
            import_file(file, said.append, run, named)
    assert {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before


def test_no_line_fits_the_data(tmp_path: Path, said: list[str]) -> None:
    with pytest.raises(DataError, match=r"no line belongs to a sample of --data .*have no sample of that"):
        terminal = [row for row in rows_of(PREDICTIONS) if row["task"].endswith("terminal")]
        import_file(write_rows(tmp_path / "theirs.jsonl", terminal), said.append, tmp_path / "run", "mini")
    assert not (tmp_path / "run").exists()


def test_lines_without_texts_need_the_data(tmp_path: Path, said: list[str], data: Path) -> None:
    bare = [without(row, *TEXTS) for row in rows_of(JUDGED)]
    file = write_rows(tmp_path / "bare.jsonl", bare)
    with pytest.raises(
        DataError, match=r"bare\.jsonl:1: lacks the texts of its row .* name the data with --data"
    ):
        import_file(file, said.append, tmp_path / "run")
    run = import_file(file, said.append, tmp_path / "run", str(data))
    assert printed(score_run(run).path) == PRINTED


def remove_reply(row: dict[str, Any]) -> dict[str, Any]:
    return without(row, "judge_raw_output", "extracted_output")


MISFITS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "another text was judged": (lambda row: row | {"extracted_output": "other"}, "judged another text"),
    "other scores": (lambda row: row | {"format": 1 + row["format"] % 5}, "hold other scores"),
    "another total": (lambda row: row | {"total_score": 4.99}, "hold other scores"),
    "a reply without verdict": (lambda row: row | {"judge_raw_output": "none"}, "hold other scores"),
    "failed with a reply": (lambda row: row | {"failed": 1.0}, "hold other scores"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_verdict_that_does_not_fit_its_line_is_told(tmp_path: Path, said: list[str], name: str) -> None:
    change, message = MISFITS[name]
    rows = rows_of(JUDGED)
    at = next(at for at, row in enumerate(rows) if not row["failed"])
    rows[at] = change(rows[at])
    import_file(write_rows(tmp_path / "theirs.jsonl", rows), said.append)
    assert [line for line in said if message in line and f"(line {at + 1})" in line], said
    assert len(said) == 2


def test_scores_without_replies_count_as_they_are(tmp_path: Path, said: list[str]) -> None:
    rows = [remove_reply(row) for row in rows_of(JUDGED)]
    run = import_file(write_rows(tmp_path / "theirs.jsonl", rows), said.append)
    assert printed(score_run(run).path) == PRINTED
    for verdict in load_run(run).verdicts():
        if verdict.scores is not None:
            whole = all(1 <= score <= 5 for score in verdict.scores.values())
            assert (verdict.failure is None) is whole, "a score of 0 is none by the strict rules"
    assert len(said) == 1


def test_an_import_is_exported_as_it_came(tmp_path: Path, said: list[str]) -> None:
    run = import_file(JUDGED, said.append)
    written = export_run(run)
    assert [(one.path, one.lines, one.left_out) for one in written] == [
        (run / "official" / "predictions.jsonl", 26, 0),
        (run / "official" / "judged.jsonl", 26, 0),
    ]
    assert (run / "official" / "predictions.jsonl").read_bytes() == PREDICTIONS.read_bytes()
    for ours, theirs in zip(rows_of(run / "official" / "judged.jsonl"), rows_of(JUDGED), strict=True):
        assert without(ours, "error_message") == without(theirs, "error_message")
        assert ("error_message" in ours) is ("error_message" in theirs)
    assert script_results(run / "official" / "judged.jsonl") == script_results(JUDGED)


def test_a_packed_file_is_refused_by_name(tmp_path: Path, said: list[str]) -> None:
    """DS-10."""
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../../x", b"0" * 1_000_000)
    for use in (stored_run, script_results, lambda path: import_file(path, said.append)):
        with pytest.raises(DataError, match=r"log\.eval:1: this is a zip archive"):
            use(file)
    assert list(tmp_path.iterdir()) == [file]


def test_scores_too_large_for_a_mean_are_an_error_of_the_file(tmp_path: Path) -> None:
    """The script's own `score` ends in an OverflowError."""
    rows = rows_of(JUDGED)
    file = write_rows(tmp_path / "theirs.jsonl", [{**row, "format": -(10**400)} for row in rows])
    with pytest.raises(DataError, match=r"theirs\.jsonl: holds scores too large for a mean"):
        script_results(file)


LOOKALIKES: list[Any] = ["2024-01-02T03:04:05", "2024-01-02", "007", 7, "7", "1e5", "NA", "null", "True", "1.0", 2**53 + 1, 2**53]  # fmt: skip


def test_texts_that_look_like_other_values_stay_what_they_are(tmp_path: Path, said: list[str]) -> None:
    """DS-03, TX-08: ids and observations through a run, its files, the export and an import of that."""
    rows = [
        {
            "task": "terminal", "id": value, "prompt": ["p"], "response": [f"**Environment Observation:**\n{value}"],
            "current_prompt": "p", "system_str": "s", "turn_idx": 1, "total_turns": 1,
        }
        for value in LOOKALIKES
    ]  # fmt: skip
    (tmp_path / "data").mkdir()
    write_rows(tmp_path / "data" / "terminal_test.jsonl", rows)
    run = evaluate("baseline/reference", data=str(tmp_path / "data"), output=tmp_path / "run")
    texts = [str(value) for value in LOOKALIKES]
    assert [(row["id"], row["gen"]) for row in exported(run.path)] == list(
        zip(LOOKALIKES, texts, strict=True)
    )
    again = load_run(
        import_file(run.path / "official" / "predictions.jsonl", said.append, tmp_path / "again")
    )
    ids = [f"terminal/{json.dumps(value) if value in QUOTED else value}/1" for value in LOOKALIKES]
    for one in (run, again):
        assert {each.sample_id: each.observation for each in one.predictions()} == dict(
            zip(ids, texts, strict=True)
        )
        assert [each.sample_id for each in one.metrics()] == ids
        assert set(one.frame().index.get_level_values("sample_id")) == set(ids)
    assert exported(again.path) == exported(run.path)


QUOTED = ("2024-01-02T03:04:05", "007", "7")
"""Strings that an id shows in quotes: 7 and "7" are two samples."""


def exported(run: Path) -> list[dict[str, Any]]:
    export_run(run)
    return rows_of(run / "official" / "predictions.jsonl")
