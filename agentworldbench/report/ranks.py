"""Ranks of runs that stand in one table of the page above several reports: what `awb compare` says of them.

In: the folders of the runs' reports and the paths of the runs. Out: the tables of ranks and of every two, or in words
why there are none. Runs that stand in several tables together are compared once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentworldbench.compare.several import Ranking, rank_runs
from agentworldbench.compare.tables import ranking_tables
from agentworldbench.errors import ConfigError
from agentworldbench.render.table import Table


@dataclass(frozen=True)
class Ranks:
    """The tables of ranks and of pairs; none, and why, where the runs cannot be ranked."""

    tables: tuple[Table, ...] = ()
    without: str | None = None


class RanksOfRuns:
    """Ranks among runs that are named by the folders of their reports.

    `paths` are the run directories by folder, `data` says where their data are now, when they have moved.
    """

    def __init__(self, paths: Mapping[str, Path], data: str | None) -> None:
        # Whole paths: in a sentence they cannot be taken for a word.
        self._paths = {folder: path.resolve() for folder, path in paths.items()}
        self._data = data
        self._found: dict[tuple[str, ...], Ranking | str] = {}

    def of(self, folders: Sequence[str], measure: str | None) -> Ranks:
        """Ranks among some of the runs by one `measure`: the digest of a judge or panel, None for the rules."""
        found = self._ranking(tuple(folders))
        if isinstance(found, str):
            return Ranks(without=found)
        standings = next((one for one in found.measures if one.judge == measure), None)
        if standings is None or found.unlike:
            return Ranks(without=f"these runs are not alike: {'; '.join(found.unlike)}")
        return Ranks(tuple(self._named(table) for table in ranking_tables(found, standings)))

    def _ranking(self, folders: tuple[str, ...]) -> Ranking | str:
        if folders not in self._found:
            try:
                # What differs is said and nothing is ranked; a refusal would say no more.
                found = rank_runs([self._paths[one] for one in folders], None, self._data, force=True)
            except ConfigError as error:
                self._found[folders] = self._folders_in(str(error))
            else:
                unlike = tuple(map(self._folders_in, found.unlike))
                self._found[folders] = found.model_copy(update={"unlike": unlike})
        return self._found[folders]

    def _named(self, table: Table) -> Table:
        return replace(table, notes=tuple(map(self._folders_in, table.notes)))

    def _folders_in(self, words: str) -> str:
        """Runs by what the page calls them, their folders: where they lay on a disk is none of its readers' business."""
        by_path = {str(path): folder for folder, path in self._paths.items()}
        longest_first = "|".join(map(re.escape, sorted(by_path, key=len, reverse=True)))
        return re.sub(longest_first, lambda found: by_path[found[0]], words)
