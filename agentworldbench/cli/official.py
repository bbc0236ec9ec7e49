"""The flags of the official script on `awb infer`, `judge` and `score`: one table, put into our own words.

Whoever used that script keeps the command line. A flag stands for a field of `RunConfig`, for the run
directory, or for a key. Keys go into this process's environment and nowhere else. Whoever uses one of these
flags means the official protocol, unless `--protocol` says otherwise. Below the command line there is
nothing of this: the values are those that our own flags would have given.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agentworldbench.texts import count_text

if TYPE_CHECKING:
    from agentworldbench.config import RunConfig
    from agentworldbench.plan import Plan
    from agentworldbench.render.table import Table

PANEL: Final = "As the official script"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Flag:
    """One flag. `means` is the field of `RunConfig` or the parameter of the command that it stands for,
    `ours` how our flag for it is called, `variable` where a key goes."""

    name: str
    commands: tuple[str, ...]
    help: str
    means: str = ""
    ours: str = ""
    variable: str = ""
    kind: Any = str
    metavar: str = "NAME"

    @property
    def word(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")

    def option(self) -> Any:
        """What Typer reads."""
        return typer.Option(
            self.word, help=self.help, metavar=self.metavar, rich_help_panel=PANEL, show_default=False
        )


FLAGS: Final = (
    Flag("predictions", ("judge", "score"), "A file of the official script, or a run directory, in place of RUN.",
         "run_path", "RUN", kind=Path, metavar="PATH"),
    Flag("data_dir", ("infer", "judge", "score"), "Folder of {domain}_test.jsonl files; as --data.",
         "data", "--data", kind=Path, metavar="DIR"),
    Flag("model_name", ("infer",), "As --model openai-api/NAME; needs --model-base-url.", "model", "--model"),
    Flag("model_api_key", ("infer",), "Key of the model's server; better in AWB_API_KEY, where nobody sees it.",
         variable="AWB_API_KEY", metavar="KEY"),
    Flag("judge_model", ("judge",), "As --judge openai-api/NAME; needs --judge-base-url.", "judge", "--judge"),
    Flag("judge_api_key", ("judge",), "Key of the judge's server; better in AWB_JUDGE_API_KEY, where nobody sees it.",
         variable="AWB_JUDGE_API_KEY", metavar="KEY"),
    Flag("max_tokens", ("judge",), "As --judge-max-tokens.", "judge_max_tokens", "--judge-max-tokens",
         kind=int, metavar="N"),
    Flag("temperature", ("judge",), "As --judge-temperature.", "judge_temperature", "--judge-temperature",
         kind=float, metavar="X"),
    Flag("output_dir", ("infer",), "As --output.", "output", "--output", kind=Path, metavar="DIR"),
    Flag("output_dir", ("judge", "score"), "Where a file of the official script is imported to: a run directory.",
         "output_dir", kind=Path, metavar="DIR"),
)  # fmt: skip


def parameters(command: str) -> list[inspect.Parameter]:
    """The flags of a command, for its signature."""
    return [
        inspect.Parameter(
            flag.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[flag.kind | None, flag.option()],
        )
        for flag in FLAGS
        if command in flag.commands
    ]


def option(command: str, name: str) -> Any:
    """One flag of a command, for an annotation."""
    return next(flag for flag in FLAGS if flag.name == name and command in flag.commands).option()


@dataclass(frozen=True)
class Asked:
    """A command in our own words: `values` by field of `RunConfig`, `others` by parameter of the command.

    `used`: at least one flag of the official script was given.
    """

    values: Mapping[str, Any]
    others: Mapping[str, Any]
    used: bool


def in_our_words(command: str, values: Mapping[str, Any], given: Mapping[str, Any], say: Say) -> Asked:
    """Put the flags of the official script among our own.

    `values` are those of our own flags, `given` all other parameters of the command (None: not given).
    Keys are set in the environment, and `say` warns of them. Raises ConfigError for what is given twice.
    """
    from agentworldbench.config import RunConfig
    from agentworldbench.errors import ConfigError

    known = [flag for flag in FLAGS if command in flag.commands]
    used = [flag for flag in known if given.get(flag.name) is not None]
    names = {flag.name for flag in known}
    ours = {**values, **{name: given[name] for name in given.keys() - names if given[name] is not None}}
    for flag in used:
        if flag.variable:
            _use_key(flag, given[flag.name], say)
        elif flag.means in ours:
            raise ConfigError(f"{flag.word} and {flag.ours} are the same; give one of them")
        else:
            ours[flag.means] = _value(flag, given[flag.name])
    if command == "judge" and used and "max_retries" in ours:
        # The script asks that often in all, whatever failed. Transient failures have tries of their own here.
        ours.setdefault("judge_attempts", min(max(1, ours["max_retries"]), 20))
    fields = RunConfig.model_fields.keys() if command == "infer" else RunConfig.model_fields.keys() - {"data"}
    return Asked(
        values={name: ours[name] for name in ours if name in fields},
        others={name: ours[name] for name in ours if name not in fields},
        used=bool(used),
    )


def _value(flag: Flag, value: Any) -> Any:
    from agentworldbench.errors import ConfigError
    from agentworldbench.resources import expanded

    if flag.name == "predictions" and not value.exists():
        raise ConfigError(f"--predictions {value}: no such file or run directory")
    if flag.name in ("model_name", "judge_model"):
        return f"openai-api/{value}"
    if flag.name == "data_dir":
        folder = expanded(value, flag.word)
        return str(Path.cwd() / folder)  # a folder, even if it is named `official` or the like
    return value


def _use_key(flag: Flag, key: str, say: Say) -> None:
    os.environ[flag.variable] = key
    say(
        f"Warning: {flag.word}: others on this machine can see a key in the command line; {flag.variable} in the "
        "environment or in .env is safer. The key is used and not stored."
    )


def make_official_config(asked: Asked, config_file: Path | None, say: Say) -> RunConfig:
    """The configuration; with flags of the official script its protocol is `official` unless one was chosen."""
    from agentworldbench.config import make_config

    config = make_config(asked.values, config_file)
    if not asked.used or "protocol" in config.model_fields_set:
        return config
    say("Flags of the official script: its protocol applies (--protocol builtin is our own).")
    return make_config({**asked.values, "protocol": "official"}, config_file)


def run_directory(asked: Asked, say: Say) -> tuple[Path, str | None]:
    """(run directory, where its data are if they have moved) for `awb judge` and `awb score`.

    A file of the official script is imported first. Raises ConfigError or DataError.
    """
    from agentworldbench.errors import ConfigError
    from agentworldbench.integrations.official_script import stored_run

    path, data, output = (asked.others.get(name) for name in ("run_path", "data", "output_dir"))
    if path is None:
        raise ConfigError("Missing argument 'RUN': name a run directory, or a file with --predictions")
    run = stored_run(path)
    if run is None:
        from agentworldbench.integrations.official_import import import_file

        run = import_file(path, say, output, data)
        say(f"{path} is imported; run directory: {run}")
    elif output is not None and output.resolve() != run.resolve():
        raise ConfigError(
            f"--output-dir {output}: the run in {run} keeps all that is asked about it; leave it out"
        )
    return run, data


def write_judged(plan: Plan, data: str | None, say: Say) -> None:
    """Leave `judged.jsonl` in the run directory, as the script does."""
    from agentworldbench.integrations.official_export import export_judged

    if len(plan.judges) != 1:
        return say(
            f"No judged.jsonl, for there are several judges: awb export official {plan.path} --judge NAME"
        )
    written = export_judged(plan.path, plan.judges[0].digest(), data)
    say(f"In the official script's form: {written.path} ({count_text(written.lines, 'line')})")
    if written.note:
        say(f"{written.path}: {written.note}")
    return None


def script_tables(asked: Asked) -> list[Table]:
    """For a judged.jsonl of the official script: what the script itself would print of it."""
    from agentworldbench.integrations.official_script import script_results, script_table, stored_run

    path = asked.others.get("run_path")
    if path is None or stored_run(path) is not None:
        return []
    results = script_results(path)
    return [script_table(path.name, results)] if results.overall is not None else []
