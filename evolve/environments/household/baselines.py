"""Agents without a model, and what they score: `python -m evolve.environments.household.baselines`.

The floor (doing nothing, talking, repeating, acting at random) and the ceiling (searching with all rules known, gold).
Plays training and guard tasks only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from evolve.environments.household.environment import PASS_MARK, STEP_LIMIT, create
from evolve.environments.household.searcher import Searcher
from evolve.protocols import Environment, Session
from evolve.records import Call, Observation, Split, Task

Reply = Call | str
Policy = Callable[[Observation], Reply]
PolicyMaker = Callable[[Task, Random], Policy]


def act(action: str) -> Call:
    """Return the call that takes an action."""
    return Call(tool="take_action", arguments={"action": action})


def play(session: Session, policy: Policy, step_limit: int = STEP_LIMIT) -> int:
    """Play until the session is done or the steps are used up; return the number of steps."""
    seen = Observation(text=session.opening.user, admissible=session.opening.admissible)
    for step in range(1, step_limit + 1):
        reply = policy(seen)
        seen = session.say(reply) if isinstance(reply, str) else session.step(reply)
        if seen.done:
            return step
    return step_limit


def silent(task: Task, rng: Random) -> Policy:
    """Do nothing: send empty messages."""
    return lambda seen: ""


def talker(task: Task, rng: Random) -> Policy:
    """Say that the task is done, in the task's own words."""
    return lambda seen: f"{task.text} Task complete."


def repeater(task: Task, rng: Random) -> Policy:
    """Repeat the first action of the opening."""
    first: list[str] = []

    def policy(seen: Observation) -> Reply:
        first.extend((seen.admissible or ("look",))[:1] if not first else ())
        return act(first[0])

    return policy


def at_random(task: Task, rng: Random) -> Policy:
    """Pick any admissible action."""
    return lambda seen: act(rng.choice(seen.admissible or ("look",)))


def searching(task: Task, rng: Random) -> Policy:
    """Search the receptacles in the order of the first message, knowing all rules but not the world."""
    searcher = Searcher(task.text)
    return lambda seen: act(searcher.choose(seen.text, seen.admissible or ()))


def episodes(environment: Environment, make: PolicyMaker, *, count: int, seed: int) -> Iterator[tuple[bool, int]]:
    """Yield success and steps of `count` episodes, going round the training and guard tasks."""
    tasks = [task for split in (Split.TRAIN, Split.GUARD) for task in environment.tasks(split)]
    rng = Random(seed)  # noqa: S311 - seeded on purpose, nothing here is secret
    for number in range(count):
        task = tasks[number % len(tasks)]
        session = environment.open(task, trial=number // len(tasks))
        steps = play(session, make(task, rng))
        yield session.score().value >= PASS_MARK, steps


def main() -> None:
    """Print one row for each agent."""
    environment = create({})
    rows = {"silent": silent, "talker": talker, "repeater": repeater, "at_random": at_random, "searching": searching}
    print("agent        episodes  success  mean steps")
    for name, make in rows.items():
        count = 9600 if name == "at_random" else 96
        played = list(episodes(environment, make, count=count, seed=0))
        success = sum(is_success for is_success, _ in played) / count
        steps = sum(steps for _, steps in played) / count
        print(f"{name:<12} {count:>8}  {success:>7.4f}  {steps:>10.1f}")


if __name__ == "__main__":
    main()
