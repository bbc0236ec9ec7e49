"""A world and a judge that are good enough to be looked at: damaged references, and verdicts on how near they are.

In: samples, of which those of the bundled data are known. Out: a script for `ScriptedServer`. The model `world`
answers a sample with its reference, damaged by the operators of `tools/damage.py`, with a text of the caller's own
where one is given, and now and then with a failure; `judge` gives integers by the likeness of the two texts that it
is shown. Equal prompts get equal answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from rapidfuzz.distance import Indel

from agentworldbench.prompts import messages_sha256, predict_messages
from agentworldbench.records import DIMENSIONS
from tests.helpers.scripted_server import ChatCall, Reply
from tests.helpers.whole_runs import prompt_hash
from tools.damage import OPERATORS, Scene, scenes

_TEXTS = re.compile(r"(?s)begin: (predicted|reference) observation\]\]\n(.*?)\n\[\[OBS-[0-9a-f]{20} end\]\]")
_DAMAGES = (
    "",
    "wrong_number",
    "dropped_line",
    "wrong_number",
    "stale_copy",
    "",
    "wrong_status",
    "another_observation",
)


class PlayedWorld:
    """The script; `own` maps ids of samples to replies of the caller's, told as they are."""

    def __init__(self, own: Mapping[str, str] | None = None, failures: bool = True) -> None:
        self._failures = failures
        self._replies = {
            messages_sha256(predict_messages(scene.sample)): (own or {}).get(scene.sample.id, _damaged(scene))
            for scene in _scenes()
        }

    def __call__(self, call: ChatCall) -> Reply:
        number = int(call.key[:8], 16)
        if "judge" in call.model:
            return Reply(
                content="No verdict today." if self._failures and number % 19 == 0 else _verdict(call, number)
            )
        if self._failures and number % 23 == 0:
            return Reply(content="", finish_reason="stop")
        if self._failures and number % 29 == 0:
            return Reply(content="<predicted_observation>\nand so on, and", finish_reason="length")
        text = self._replies[prompt_hash(call)]
        return Reply(
            content=f"The environment answers.\n<predicted_observation>\n{text}\n</predicted_observation>"
        )


def _scenes() -> Iterable[Scene]:
    return (scene for some in scenes().values() for scene in some)


def _damaged(scene: Scene) -> str:
    at = int(scene.sample.ref.row_hash[:6], 16)
    name = _DAMAGES[at % len(_DAMAGES)]
    return OPERATORS[name](scene, 1 + at % 4) if name else scene.text


def _verdict(call: ChatCall, number: int) -> str:
    texts = dict(_TEXTS.findall(call.last_user))
    near = Indel.normalized_similarity(texts["predicted"][:4000], texts["reference"][:4000])
    scores = {
        name: max(1, min(5, round(1 + 4 * near + (number >> (3 * at)) % 3 - 1.2)))
        for at, name in enumerate(DIMENSIONS)
    }
    verdict = {
        "reasons": f"The two texts agree in {near:.0%} of their characters.",
        "strengths": ["The layout is that of the environment."],
        "weaknesses": ["A value differs from the real one."] if near < 1 else [],
        "scores": scores,
    }
    return (
        f"Compared line by line.\n\n<final_evaluation>\n{json.dumps(verdict, indent=1)}\n</final_evaluation>"
    )
