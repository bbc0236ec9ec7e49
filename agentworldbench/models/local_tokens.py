"""Tokenizers that lie on this machine already, for counting prompts without asking anybody.

In: a model. Out: its name and a function from text to tokens, or None. OpenAI's encodings and DeepSeek's
tokenizer come with LiteLLM; those of open models are found in a folder or in the Hugging Face cache.
Nothing is fetched and no model is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentworldbench.models.base import Model

Counter = Callable[[str], int]
_FILES: Final = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""Under which names tiktoken keeps OpenAI's encodings: without the file it would fetch one."""
_OLDER: Final = ("gpt-4-", "gpt-3.5", "gpt-4")
_NEWER: Final = ("gpt-4o", "gpt-4.1", "gpt-4.5")
_OPENAI: Final = ("gpt-", "chatgpt-", "o1", "o3", "o4")


def local_counter(model: Model) -> tuple[str, Counter] | None:
    """(name of the tokenizer, tokens of a text) for a model; None where no tokenizer is at hand."""
    identity = model.identity()
    name, backend = str(identity.get("name") or model.name.partition("/")[2]), identity.get("backend")
    if backend != "litellm":
        return _hugging_face(name)
    provider, _, served = name.rpartition("/")
    if provider.partition("/")[0] in ("", "openai", "azure"):
        return _openai(served)
    if "deepseek" in provider:
        return _from_file(_litellm_folder() / "deepseek_tokenizer.json", "DeepSeek's tokenizer")
    return _hugging_face(name.partition("/")[2])


def _litellm_folder() -> Path:
    from importlib.util import find_spec

    found = find_spec("litellm")
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0] if places else ".") / "litellm_core_utils" / "tokenizers"


def _openai(served: str) -> tuple[str, Counter] | None:
    if not served.startswith(_OPENAI):
        return None
    older = served.startswith(_OLDER) and not served.startswith(_NEWER)
    encoding = "cl100k_base" if older else "o200k_base"
    folder = Path(os.environ.get("TIKTOKEN_CACHE_DIR") or _litellm_folder())
    if not (folder / _FILES[encoding]).is_file():
        return None
    import tiktoken

    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
    made = tiktoken.get_encoding(encoding)
    return encoding, lambda text: len(made.encode_ordinary(text))


def _hugging_face(name: str) -> tuple[str, Counter] | None:
    """From a folder, or from the cache where the name is that of a repository."""
    with suppress(OSError, RuntimeError, ValueError):  # a name that no file can have, or nobody's home
        folder = Path(name).expanduser()
        if folder.is_dir():
            return _from_file(folder / "tokenizer.json", f"the tokenizer in {folder}")
    if name.count("/") != 1:
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(name, "tokenizer.json")
    except HFValidationError:
        return None
    return _from_file(Path(path), f"the tokenizer of {name}") if isinstance(path, str) else None


def _from_file(path: Path, called: str) -> tuple[str, Counter] | None:
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        made = Tokenizer.from_file(str(path))
    except Exception:  # noqa: BLE001 - the library raises Exception itself for a file that it cannot read
        return None
    return called, lambda text: len(made.encode(text, add_special_tokens=False).ids)
