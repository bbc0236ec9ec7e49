"""A bundle in the form of another program's files: the target of `awb submit --to eee` and `--to lm-eval`.

In: a prepared bundle, where its data are. Out: the files that `awb export` would write, made from what may be public, not from
the run. They hold ids and hashes of prompts and references, not their texts.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentworldbench.errors import ConfigError
from agentworldbench.integrations.every_eval_export import Submitter, export_every_eval
from agentworldbench.integrations.export_source import Written
from agentworldbench.integrations.lm_eval_export import export_lm_eval
from agentworldbench.submission.pack import Prepared
from agentworldbench.texts import count_text


@dataclass(frozen=True)
class ExportTarget:
    """A folder of files of Every Eval Ever or lm-evaluation-harness. `data` is where the run's data are."""

    form: Literal["eee", "lm-eval"]
    folder: Path
    data: str
    judge: str | None = None

    @property
    def leaves(self) -> bool:
        """Files stay here."""
        return False

    def check(self) -> None:
        """Refuse a file, and a run directory."""
        if self.folder.is_file() or (self.folder / "run.json").exists():
            raise ConfigError(f"--output {self.folder}: is a file or a run directory; name another folder")

    def told(self, prepared: Prepared) -> list[str]:
        """The files and their sizes."""
        with tempfile.TemporaryDirectory(prefix="awb-submit-") as scratch:
            written = self._export(prepared, Path(scratch))
            sizes = {path.relative_to(scratch): path.stat().st_size for path in written.paths}
        files = [f"  {path}: {count_text(size, 'byte')}" for path, size in sizes.items()]
        return [
            f"Goes to the folder {self.folder}, as files of {self.form} made from the above:",
            *files,
            *written.notes,
        ]

    def deliver(self, prepared: Prepared) -> list[str]:
        """Write the files; those with other contents stay. Raises ConfigError then."""
        return [str(path) for path in self._export(prepared, self.folder).paths]

    def _export(self, prepared: Prepared, folder: Path) -> Written:
        if self.form == "lm-eval":
            return export_lm_eval(prepared.folder, folder, judge=self.judge, data=self.data)
        who = prepared.manifest.submitter
        submitter = None if who is None else Submitter(organization=who.name)
        return export_every_eval(
            prepared.folder, folder, judge=self.judge, data=self.data, submitter=submitter
        )
