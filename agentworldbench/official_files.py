"""The official prompt files: which they are, where they are kept, and reading them checked by hash.

In: a folder with the files, or None for the cache. Out: `OfficialPrompts`, the judge's system prompt of
each domain and the user template. The files belong to their repository and are not part of this project:
what stands here is where they come from and the SHA-256 of each. A file is checked whenever it is read,
and one with another hash is refused. The template is a constant in a Python file there; it is read from
the syntax tree (`ast`), and that file is never imported or run. `pull.py` fetches the files.
"""

from __future__ import annotations

import ast
import hashlib
import os
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.errors import ConfigError, DataError

PARTS: Final = ("context", "world_model_input", "predicted_observation", "ground_truth")
"""The placeholders of the user template; each stands in it once."""
KEEP: Final = "name a folder that has it with --prompts DIR, or run `awb data pull official-prompts`"


@dataclass(frozen=True)
class OfficialFile:
    """One file of the repository: its path there, and the path in a folder that holds prompts alone."""

    path: str
    flat: str
    size: int
    sha256: str


@dataclass(frozen=True)
class OfficialManifest:
    """All files of one commit. The template is `constant` in the Python file `code`, or a text file of
    its own (`template`) in a folder of prompts; `template.sha256` is the hash of the constant, too."""

    repository: str
    commit: str
    systems: Mapping[str, OfficialFile]
    code: OfficialFile
    constant: str
    template: OfficialFile

    @property
    def files(self) -> tuple[OfficialFile, ...]:
        """What is fetched from the repository."""
        return (*self.systems.values(), self.code)


def _system(domain: str, size: int, sha256: str) -> tuple[str, OfficialFile]:
    flat = f"{domain}/judge_system_prompt.txt"
    return domain, OfficialFile(f"prompts/{flat}", flat, size, sha256)


OFFICIAL: Final = OfficialManifest(
    repository="https://github.com/QwenLM/Qwen-AgentWorld",
    commit="cd0aa83dc7a9c733695eb9c4652e0a68b6e6ecde",
    systems=dict(
        (
            _system("mcp", 4578, "dd2d05c1648cb90c77334cc5f15ba331aa92452effb85ddc5868e6b3608ebfb2"),
            _system("search", 3962, "3300bf23258ca556020d48d2fea6c5fb878ce451a100c6110f461c079ab50d83"),
            _system("terminal", 7678, "0c416c5e55d77733ec6c52064a196e10b17833703d4bde9b046291e77a996dbc"),
            _system("swe", 6312, "c4abc65e1ca1b5947c1596be2be63aebed5a8cd184ff95ebefaf38b3d4b9fa8e"),
            _system("android", 12754, "04e654f3f907139c1aaeb9c0ab1374cb6bac8162ce3af76c0f4dc3ed2dedadaa"),
            _system("web", 12856, "dc2517b4e04eb8ea9e10fb7b8fcdefc9487ad26cb0cc20ec8d2fca29d532c6d6"),
            _system("os", 13118, "105640a1d7c70280f5c4f042d3968a1a8a0dffae2b06ae9d780a45cb9a8c1426"),
        )
    ),
    code=OfficialFile(
        "eval/lwm_eval_utils/task_configs.py",
        "task_configs.py",
        6189,
        "9f54d42d80bb0a4abab03f606da715b68bbb51f1e0257850e5a93d83b0f4113a",
    ),
    constant="JUDGE_USER_PROMPT",
    template=OfficialFile(
        "judge_user_prompt.txt",
        "judge_user_prompt.txt",
        1881,
        "fef65e91721756c369abe85c956fd0d785f36d8d6cca8a7d34fb87c809d9b1f6",
    ),
)


@dataclass(frozen=True)
class OfficialPrompts:
    """The texts as they stand in the files, nothing stripped. `sha256` names every text by its hash:
    the domains, and `user` for the template."""

    commit: str
    folder: Path
    systems: Mapping[str, str]
    user: str
    sha256: Mapping[str, str]

    def system(self, domain: str) -> str:
        """The judge's system prompt. Raises ConfigError for a domain that has no official one."""
        if domain not in self.systems:
            known = ", ".join(self.systems)
            raise ConfigError(
                f"protocol official has no judge prompt for domain '{domain}' (it has {known}); leave the domain "
                "out with --tasks, or use --protocol builtin"
            )
        return self.systems[domain]


def cache_root() -> Path:
    """`$AWB_CACHE`, else `$XDG_CACHE_HOME/agentworldbench`, else `~/.cache/agentworldbench`.

    Raises ConfigError where there is no home directory either.
    """
    try:
        if own := os.environ.get("AWB_CACHE", "").strip():
            return Path(own).expanduser().absolute()
        shared = os.environ.get("XDG_CACHE_HOME", "").strip()
        # The XDG rules: a relative path is to be ignored.
        base = Path(shared) if Path(shared).is_absolute() else Path.home() / ".cache"
    except RuntimeError as problem:
        raise ConfigError("no home directory to keep files in; set AWB_CACHE to a folder") from problem
    return base / "agentworldbench"


def prompts_folder(manifest: OfficialManifest = OFFICIAL) -> Path:
    """Where pulled prompt files lie: a folder named by the commit."""
    return cache_root() / "official" / manifest.commit


def official_prompts(folder: Path | None = None, manifest: OfficialManifest = OFFICIAL) -> OfficialPrompts:
    """Read the official prompts from `folder` (None: from the cache), every file checked by its hash.

    The folder is a checkout of the repository, or holds `<domain>/judge_system_prompt.txt` and
    `judge_user_prompt.txt`. Raises DataError for a file that is missing, of another hash or unreadable.
    """
    where = prompts_folder(manifest) if folder is None else existing_folder(folder)
    if where is None:
        raise DataError(f"--prompts {folder}: no such folder")
    if lost := missing_files(where, manifest):
        raise DataError(f"{where}: official files are missing: {named(lost)}; {KEEP}")
    systems = {domain: read_file(where, file, manifest)[1] for domain, file in manifest.systems.items()}
    user = _template(where, manifest)
    hashes = {domain: file.sha256 for domain, file in manifest.systems.items()}
    return OfficialPrompts(manifest.commit, where, systems, user, hashes | {"user": manifest.template.sha256})


def existing_folder(folder: Path) -> Path | None:
    """The folder that a user names, `~` resolved; None if there is none, or it cannot be looked into."""
    try:
        place = folder.expanduser()
        return place if place.is_dir() else None
    except (OSError, RuntimeError):  # a name too long, a parent without rights, an unknown ~user
        return None


def missing_files(folder: Path, manifest: OfficialManifest = OFFICIAL) -> list[OfficialFile]:
    """The files that `folder` does not have, whatever the others hold."""
    lost = [file for file in manifest.systems.values() if find_file(folder, file) is None]
    if find_file(folder, manifest.code) is None and find_file(folder, manifest.template) is None:
        lost.append(manifest.code)
    return lost


def named(files: Sequence[OfficialFile]) -> str:
    """Files as a message names them; those that differ by their domain alone are written as one."""
    domains = [file.flat.partition("/")[0] for file in files if "/" in file.flat]
    if len(domains) < 2:
        return ", ".join(file.path for file in files)
    others = [file.path for file in files if "/" not in file.flat]
    return ", ".join([f"prompts/{{{','.join(domains)}}}/judge_system_prompt.txt", *others])


def find_file(folder: Path, file: OfficialFile) -> Path | None:
    """Where `file` lies in a checkout or in a folder of prompts, or None.

    Raises DataError when the folder cannot be looked into.
    """
    places = (folder / file.path, folder / file.flat)
    try:
        return next((path for path in places if path.is_file()), None)
    except OSError as problem:
        raise DataError(f"{folder}: cannot be read ({problem.strerror})") from problem


def read_file(folder: Path, file: OfficialFile, manifest: OfficialManifest) -> tuple[Path, str]:
    """A file's path and text. Raises DataError when it is missing, unreadable or has another hash."""
    path = find_file(folder, file)
    if path is None:
        raise DataError(f"{folder / file.path}: no such file; {KEEP}")
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise DataError(f"{path}: cannot be read ({problem.strerror})") from problem
    check_hash(data, file, manifest, str(path), f"move it away, then {KEEP}")
    try:
        return path, data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise DataError(f"{path}: not UTF-8 ({problem.reason} at byte {problem.start})") from None


def check_hash(data: bytes, file: OfficialFile, manifest: OfficialManifest, where: str, advice: str) -> None:
    """Refuse bytes that are not those of the pinned commit. Raises DataError with both hashes."""
    found = hashlib.sha256(data).hexdigest()
    if found == file.sha256:
        return
    unix = hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest() == file.sha256
    reason = (
        " (only its line ends differ: git wrote CRLF; check out with core.autocrlf=false)" if unix else ""
    )
    raise DataError(
        f"{where}: SHA-256 is {found}, expected {file.sha256}: this is not {file.path} of commit "
        f"{manifest.commit[:12]}{reason}; {advice}"
    )


def _template(folder: Path, manifest: OfficialManifest) -> str:
    """The user template: the constant of the Python file, or the text file where that file is not there."""
    if find_file(folder, manifest.code) is None:
        path, text = read_file(folder, manifest.template, manifest)
    else:
        path, source = read_file(folder, manifest.code, manifest)
        text = constant_of(source, manifest.constant, path)
        where = f"{path}: {manifest.constant}"
        check_hash(text.encode("utf-8", "replace"), manifest.template, manifest, where, KEEP)
    try:
        fields = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError as problem:
        raise DataError(f"{path}: the user template is no format string ({problem})") from None
    if len(fields) != len(PARTS) or set(fields) != {(name, "", None) for name in PARTS}:
        raise DataError(f"{path}: the user template must hold each of {', '.join(PARTS)} once, in braces")
    return text


def constant_of(source: str, name: str, path: Path) -> str:
    """The string that a module assigns to `name` at its top level, taken from the syntax tree.

    Nothing is run: the value must be a literal. Raises DataError when it is missing or no string.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise DataError(f"{path}: cannot be read as Python ({problem})") from None
    found: ast.expr | None = None
    for node in tree.body:  # as in Python, the last assignment counts
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            found = node.value
    if found is None:
        raise DataError(f"{path}: assigns no constant {name} at its top level")
    try:
        value = ast.literal_eval(found)
    except (ValueError, TypeError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, str):
        raise DataError(f"{path}:{found.lineno}: {name} is not a plain string")
    return value
