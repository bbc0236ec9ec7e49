"""Metrics of terminals: the prompt, the echo, what each command came to, its output, what the terminal waits for.

All read the screen as it is shown (`screen.display`): colours and overwritten text do not count. A blank
prediction of a screen that is not blank is unparsable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.error_kinds import error_kinds, exit_code_kind
from agentworldbench.scoring.metrics.facts import Facts, multiset_f1
from agentworldbench.scoring.metrics.keystrokes import Typed, typed
from agentworldbench.scoring.metrics.prompts import Place, place
from agentworldbench.scoring.metrics.screen import FILLER, Screen, ScreenReader, display, last_line
from agentworldbench.scoring.metrics.screen_state import state_of
from agentworldbench.scoring.metrics.text import rouge_of, tokens

BLANK: Final = Unparsable("the predicted screen is blank")
_PRINTED: Final = frozenset({"output"})


def _typed(facts: Facts) -> Typed:
    return facts.once(typed, facts.action)


def _last(shown: str) -> str:
    lines = shown.split("\n")
    index = last_line(lines)
    return lines[index] if index >= 0 else ""


def _screen(facts: Facts, text: str) -> Screen:
    waiting = facts.once(_last, facts.once(display, facts.previous or ""))
    return facts.once(ScreenReader(_typed(facts), waiting), facts.once(display, text))


def _masked(facts: Facts, text: str) -> list[str]:
    """Masked lines of the screen, one for each shown line."""
    shown = facts.once(display, text)
    masked = facts.mask(shown).split("\n")
    return masked if len(masked) == shown.count("\n") + 1 else shown.split("\n")


def _blank(facts: Facts, text: str) -> bool:
    return _screen(facts, text).last < 0


def _prompt(facts: Facts, text: str) -> tuple[Place, bool] | None:
    """The last prompt, its volatile parts masked, and whether the screen waits there."""
    screen = _screen(facts, text)
    if screen.prompt is None:
        return None
    index, prompt = screen.prompt
    if not screen.waits:
        # The typed text behind it is known and never masked.
        masked, echo = _masked(facts, text)[index], screen.echoes[index]
        prompt = masked[: -len(echo)].rstrip() if masked.endswith(echo) else prompt
    else:
        prompt = _masked(facts, text)[index]
    return place(prompt), screen.waits


def has_prompt(facts: Facts) -> bool:
    """`prompt_match` applies where the reference shows a prompt."""
    return _prompt(facts, facts.reference) is not None


def prompt_match(facts: Facts, prediction: str) -> float:
    """1 when the last prompt names the same user, host and directory, and the screen waits there or not as it should."""
    return float(_prompt(facts, prediction) == _prompt(facts, facts.reference))


def has_echo(facts: Facts) -> bool:
    """`echo_match` applies where the reference echoes a typed line."""
    return bool(_screen(facts, facts.reference).echoes)


def echo_match(facts: Facts, prediction: str) -> float:
    """F1 of the echoed typed lines."""
    reference, predicted = _screen(facts, facts.reference), _screen(facts, prediction)
    return multiset_f1(Counter(predicted.echoes.values()), Counter(reference.echoes.values()))


def _statuses(screen: Screen) -> Counter[tuple[str, frozenset[str]]]:
    """Each command and what it came to."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    begun = set(screen.commands())
    for index in sorted({*begun, *screen.output()}):
        if index in begun:
            parts.append((screen.echoes[index], []))
        else:
            parts[-1][1].append(screen.lines[index])
    # What stands above the first command belongs to an earlier one, if anything does.
    return Counter(
        (command, _outcome(command, lines)) for command, lines in (parts if parts[0][1] else parts[1:])
    )


def _outcome(command: str, lines: Sequence[str]) -> frozenset[str]:
    """The kinds of error in the output of a command; without one whether it printed anything.

    A command that succeeds in silence is told apart: else whoever echoes the keys alone would have most of them right.
    """
    return error_kinds(lines) | exit_code_kind(command, lines) or (_PRINTED if lines else frozenset())


def status_class(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of (command, what it came to); of the whole screen where the reference echoes no command."""
    if _blank(facts, prediction) and not _blank(facts, facts.reference):
        return BLANK
    reference, predicted = _screen(facts, facts.reference), _screen(facts, prediction)
    if not reference.echoes:
        outcomes = [
            _outcome("", [screen.lines[index] for index in screen.output()])
            for screen in (reference, predicted)
        ]
        return float(outcomes[0] == outcomes[1])
    if not predicted.echoes:
        return 0.0
    return multiset_f1(_statuses(predicted), _statuses(reference))


def _output(facts: Facts, text: str) -> list[str]:
    masked = _masked(facts, text)
    return [masked[index] for index in _screen(facts, text).output() if masked[index] != FILLER]


def output_line_f1(facts: Facts, prediction: str) -> float | Unparsable:
    """F1 of the masked lines that programs wrote: neither echoes nor bare prompts. None in both is 1."""
    if _blank(facts, prediction) and not _blank(facts, facts.reference):
        return BLANK
    return multiset_f1(Counter(_output(facts, prediction)), Counter(_output(facts, facts.reference)))


def _output_tokens(facts: Facts, text: str) -> list[str]:
    return facts.once(tokens, "\n".join(_output(facts, text)))


def prints_words(facts: Facts) -> bool:
    """`output_rouge_l` applies where the output of the reference has a token."""
    return bool(_output_tokens(facts, facts.reference))


def output_rouge_l(facts: Facts, prediction: str) -> float | Unparsable:
    """ROUGE-L of the masked output: the echo, which every model gets, is no part of it."""
    if _blank(facts, prediction):
        return BLANK
    return rouge_of(_output_tokens(facts, facts.reference), _output_tokens(facts, prediction))


def _state(facts: Facts, text: str) -> str:
    keys = _typed(facts)
    return state_of(_screen(facts, text), keys.lines, keys.pending)


def _state_before(shown: str) -> str:
    return state_of(ScreenReader(Typed())(shown), (), "")


def is_interactive(facts: Facts) -> bool:
    """`interactive_state` applies unless a shell waited before and waits again: `prompt_match` covers that."""
    before = facts.previous
    states = {"shell" if before is None else facts.once(_state_before, facts.once(display, before))}
    return states | {_state(facts, facts.reference)} != {"shell"}


def interactive_state(facts: Facts, prediction: str) -> float | Unparsable:
    """1 when the terminal is left in the same state: pager, editor, unfinished input, program, question, running, shell."""
    if _blank(facts, prediction) and not _blank(facts, facts.reference):
        return BLANK
    return float(_state(facts, prediction) == _state(facts, facts.reference))


METRICS: Final[dict[str, Metric]] = {
    "prompt_match": Metric(prompt_match, has_prompt),
    "echo_match": Metric(echo_match, has_echo),
    "status_class": Metric(status_class),
    "output_line_f1": Metric(output_line_f1),
    "output_rouge_l": Metric(output_rouge_l, prints_words),
    "interactive_state": Metric(interactive_state, is_interactive),
}
