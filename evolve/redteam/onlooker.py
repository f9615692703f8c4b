"""Attacks of a plain child process on the process of evolve itself, which holds keys and sealed tasks in its memory."""

from __future__ import annotations

import os

from evolve.redteam.outcome import Outcome, judged, passed_over
from evolve.redteam.rule_code import MEMORY, REACHED, VARIABLES, RuleAttack
from evolve.redteam.rules import planted, undefended_words
from evolve.secrets import private_memory

ATTACKS = (
    RuleAttack("03.host", "a child process reads evolve's memory", MEMORY, "memory"),
    RuleAttack("03.host", "a child process reads evolve's variables", VARIABLES, "process"),
)


def attack_from_a_child() -> list[Outcome]:
    """Look into this process from a child while it keeps its memory private, and while it does not."""
    if os.geteuid() == 0:
        reason = "root reads every process; work as an ordinary user (rule code is kept out all the same)"
        return [passed_over(attack.case, "child process", attack.attack, reason=reason) for attack in ATTACKS]
    with planted() as targets:
        with private_memory() as is_private:
            inside = undefended_words(ATTACKS, targets)
        outside = undefended_words(ATTACKS, targets)
    return [
        judged(
            attack.case,
            "child process",
            attack.attack,
            tier="private memory" if is_private else "none",
            is_through=REACHED in shut_out,
            is_through_undefended=REACHED in let_in,
        )
        for attack, shut_out, let_in in zip(ATTACKS, inside, outside, strict=True)
    ]
