"""Exports a run and opens the files with the programs they are made for: `python tools/check_exports.py RUN`.

In: a run directory with results. Out: a line for each format: read by which version of what, or not looked at because
that program is not installed here. Run it in an environment that has some of lm-eval, inspect-ai, every_eval_ever,
pandas with pyarrow, polars and duckdb; the readers are no dependencies of this project: `.ci/readers` makes such an
environment, in which a slow test runs this. An
export that its program refuses ends it with its error. Exports go into a temporary folder.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from agentworldbench.integrations.every_eval_export import Submitter, export_every_eval
from agentworldbench.integrations.inspect_export import export_inspect
from agentworldbench.integrations.lm_eval_export import export_lm_eval
from agentworldbench.integrations.parquet_export import export_parquet
from agentworldbench.run import load_run


def lm_eval(run: Path, folder: Path) -> str:
    """The table of the results."""
    from lm_eval.utils import make_table

    results, *samples = export_lm_eval(run, folder).paths
    made = json.loads(results.read_text(encoding="utf-8"))
    print(make_table(made, "groups"))
    return f"make_table: {len(make_table(made).splitlines())} lines, {len(samples)} files of samples"


def inspect(run: Path, folder: Path) -> str:
    """The log listed, whole, by header, by summaries, and sample by sample; written again by Inspect and read."""
    from inspect_ai.log import (
        list_eval_logs,
        read_eval_log,
        read_eval_log_sample,
        read_eval_log_sample_summaries,
        write_eval_log,
    )

    export_inspect(run, folder)
    (listed,) = list_eval_logs(str(folder))
    log, header = read_eval_log(listed), read_eval_log(listed, header_only=True)
    summaries = read_eval_log_sample_summaries(listed)
    assert log.samples is not None and len(log.samples) == len(summaries)
    predictions = sum(1 for _ in load_run(run).predictions())
    assert predictions == len(summaries), "every answer is a sample"
    for one in summaries:
        assert read_eval_log_sample(listed, one.id, one.epoch).uuid == one.uuid
    assert header.results is not None and header.results.headline is not None
    for suffix in (".json", ".eval"):
        copy = folder / f"copy{suffix}"
        write_eval_log(log, str(copy))
        assert len(read_eval_log(str(copy)).samples or []) == len(summaries)
    errors = sum(one.error is not None for one in summaries)
    return f"status {header.status}, {len(summaries)} samples, {errors} with errors"


def every_eval(run: Path, folder: Path) -> str:
    """Its own validator."""
    import every_eval_ever  # noqa: F401 - is it here?

    submitter = Submitter("Nobody", "other", "nobody/model")
    paths = [
        str(path.relative_to(folder)) for path in export_every_eval(run, folder, submitter=submitter).paths
    ]
    command = [sys.executable, "-m", "every_eval_ever", "validate", *paths]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return "every_eval_ever validate: no error, no warning"


def pandas(run: Path, folder: Path) -> str:
    """The table as a data frame."""
    import pandas as library
    import pyarrow  # noqa: F401 - is it here?

    frame = library.read_parquet(export_parquet(run, folder).paths[0])
    return f"{len(frame)} rows, {len(frame.columns)} columns"


def polars(run: Path, folder: Path) -> str:
    """The table as a data frame."""
    import polars as library
    import pyarrow  # noqa: F401 - is it here?

    return f"shape {library.read_parquet(export_parquet(run, folder).paths[0]).shape}"


def duckdb(run: Path, folder: Path) -> str:
    """The table asked in SQL."""
    import duckdb as library
    import pyarrow  # noqa: F401 - is it here?

    path = export_parquet(run, folder).paths[0]
    (counts,) = library.sql(f"select count(*), count(score) from '{path}'").fetchall()
    return f"{counts[0]} rows, {counts[1]} scores"


READERS: dict[str, tuple[str, Callable[[Path, Path], str]]] = {
    "lm-eval": ("lm-eval", lm_eval),
    "inspect": ("inspect-ai", inspect),
    "eee": ("every-eval-ever", every_eval),
    "parquet": ("pandas", pandas),
    "parquet, polars": ("polars", polars),
    "parquet, DuckDB": ("duckdb", duckdb),
}


def main() -> None:
    """Try every reader."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python tools/check_exports.py RUN")
    run = Path(sys.argv[1]).resolve()
    for name, (package, read) in READERS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = read(run, Path(folder).resolve())
            except ModuleNotFoundError as problem:
                print(f"{name}: not looked at, {problem.name} is not installed")
                continue
        print(f"{name}: {package} {importlib.metadata.version(package)}: {said}")


if __name__ == "__main__":
    main()
