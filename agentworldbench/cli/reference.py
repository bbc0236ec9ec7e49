"""What holds for every command: exit codes and the variables of the environment that are heard, in words.

Nothing here decides anything: the codes are raised where `errors.py` and the commands say, the variables are read where
they are used, and tests hold the tables against that code. `awb --help` ends with the codes, docs/commands.md has both
tables (`tools/make_command_reference.py`).
"""

from __future__ import annotations

from typing import Final

EXIT_CODES: Final[tuple[tuple[int, str], ...]] = (
    (0, "done"),
    (1, "a bug, or a file that cannot be read or written"),
    (2, "wrong usage, configuration, data or credentials, or an endpoint that cannot be used"),
    (3, "more samples without a score than `--fail-on-error` allows"),
    (4, "`--max-cost` reached"),
    (5, "the provider's quota exhausted"),
    (6, "`awb verify` refuses the bundle"),
    (7, "`awb verify` could not check the bundle wholly"),
    (130, "stopped by Ctrl-C or a signal"),
)
"""(code, what it means), in Markdown."""

ENVIRONMENT: Final[tuple[tuple[str, str], ...]] = (
    ("`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, …", "keys of hosted models, under the providers' own names"),
    ("`AWB_API_KEY`", "key of the server behind `--base-url`; a server that wants none needs none"),
    ("`AWB_JUDGE_API_KEY`", "key of the server behind `--judge-base-url`; else `AWB_API_KEY`"),
    ("`HF_ENDPOINT`, `HF_TOKEN`, `HF_HOME`, `HF_HUB_OFFLINE`, `HF_HUB_ETAG_TIMEOUT`",
     "where and how the benchmark's data are fetched, as for every program that uses the Hugging Face hub"),
    ("`AWB_CACHE`", "folder of pulled judge prompts; else `XDG_CACHE_HOME/agentworldbench`, else `~/.cache/agentworldbench`"),
    ("`AWB_OFFICIAL_PROMPTS_URL`", "a mirror of the official prompt files"),
    ("`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`", "proxies, for every server"),
    ("`SSL_CERT_FILE`, else `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE`; `SSL_CERT_DIR`", "certificates, for every server"),
    ("`TIKTOKEN_CACHE_DIR`", "where OpenAI's encodings lie; default: those that come with LiteLLM"),
    ("`CUDA_VISIBLE_DEVICES`", "which accelerators `hf/` and `vllm/` use"),
    ("`OPENAI_ORG_ID`, `OPENAI_PROJECT_ID`", "organisation and project that OpenAI-compatible servers are told"),
    ("`COLUMNS`, `NO_COLOR`, `TERM`, `CI`", "width and colour of the tables on a terminal; `TERM=dumb` and `CI` are logs"),
)  # fmt: skip
"""(names, what they are for), in Markdown. A file `.env` in the working directory may set them too."""


def codes_in_a_line() -> str:
    """The exit codes as the last sentence of `awb --help`."""
    codes = "; ".join(f"{code} {meaning.replace('`', '')}" for code, meaning in EXIT_CODES)
    return f"Exit codes: {codes}. After 4, 5 and 130 the same command goes on."
