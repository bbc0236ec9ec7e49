"""A model and a judge for runs that the official script and the harness both make.

`script` answers whoever asks for the model `judge` as a judge and all others as the model. Every answer is
decided by what both programs send alike: the model's messages, and the prediction that the judge is shown,
not the text around it. So the same rows give the same replies whatever the prompts are. All kinds of replies
occur: good, empty, thinking alone, cut, refused by the server; verdicts that the two readings take
differently, replies without verdict, judge calls that fail.
"""

from __future__ import annotations

import hashlib
import re

from .scripted_calls import ChatCall, Reply
from .scripted_replies import echo_world, hash_scores, verdict_text
from .whole_runs import kind_of_call

REFUSED = Reply(status=400, error={"message": "this one is refused", "type": "invalid_request_error"})
_PREDICTION = re.compile(r"\(Simulated\):\*\*\n```\n(.*?)\n```\n\n", re.DOTALL)


def script(call: ChatCall) -> Reply:
    """A whole evaluation."""
    return judge(call) if call.model == "judge" else world(call)


def world(call: ChatCall) -> Reply:
    """The model; a number from 0 to 9 that its messages decide says how it answers."""
    good = str(echo_world(call).content)
    cut = good.partition("</predicted_observation>")[0]
    answers = {
        0: Reply(content=None),
        1: Reply(content=f"<think>\nA listing, I think.\n</think>\n{good}"),
        2: Reply(content="<think>\nThis never came to an end"),
        3: REFUSED,
        4: Reply(content=cut, finish_reason="length"),
        5: Reply(content=" \n"),
    }
    return answers.get(kind_of_call(call), Reply(content=good))


def judge(call: ChatCall) -> Reply:
    """The judge; the prediction alone decides."""
    shown = _PREDICTION.search(call.last_user)
    prediction = shown.group(1) if shown else ""
    scores: dict[str, object] = dict(hash_scores(prediction))
    kind = int(hashlib.sha256(prediction.encode()).hexdigest()[:8], 16) % 9
    texts = {
        0: "Both are alike, more or less.",
        1: verdict_text({name: scores[name] for name in scores if name != "realism"}),
        2: verdict_text({name: f"{score}/5" for name, score in scores.items()}),
        3: verdict_text(scores | {"quality": 9}),
    }
    return REFUSED if kind == 4 else Reply(content=texts.get(kind, verdict_text(scores)))
