"""Finds the files that belong to the harness but are not code.

`tasks/`, `leaderboards/` and `reports/` stand at the top of the repository, where people edit
them, and are package data (`agentworldbench/_assets/`) in a wheel. `asset` hides the difference.
The bundled data set always lies inside the package.
"""

from __future__ import annotations

from pathlib import Path

from agentworldbench.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent


def asset(*parts: str) -> Path:
    """Path of a bundled file or folder, for example `asset("tasks", "terminal.yaml")`."""
    packaged = _PACKAGE / "_assets"
    return (packaged if packaged.is_dir() else _PACKAGE.parent).joinpath(*parts)


def mini_folder() -> Path:
    """Folder of the bundled data set `mini`, in the official layout."""
    return _PACKAGE / "data" / "mini"


def expanded(path: Path, given: str) -> Path:
    """A path with `~` resolved; `given` says where it stands (`--cache`). Raises ConfigError for a home that nobody has."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{given}: {path}: no home directory is known for {path.parts[0]!r}; write the path without it"
        ) from None


def find_config(path: Path) -> Path:
    """A configuration file as it is named, else the bundled recipe of that name (with or without .yaml)."""
    recipe = asset("tasks", "models", f"{path.name.removesuffix('.yaml')}.yaml")
    named = path.parent == Path() or path.parent.parts[-2:] == ("tasks", "models")
    return recipe if named and not path.exists() and recipe.is_file() else path


def recipe_names() -> list[str]:
    """The bundled recipes, by the names that `--config` takes."""
    return sorted(path.stem for path in asset("tasks", "models").glob("*.yaml"))


def read_dotenv() -> None:
    """Take keys from `.env` in the working directory; what the environment has already wins.

    Raises ConfigError when the file cannot be read.
    """
    if Path(".env").is_file():
        from dotenv import load_dotenv

        try:
            load_dotenv(".env", override=False)
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigError(f".env: cannot be read ({problem})") from problem
