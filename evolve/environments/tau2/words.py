"""What agent, simulated customer and judge are told besides the benchmark's own policies and scenarios."""

from __future__ import annotations

from textwrap import indent

from evolve.records import Json

GREETING = "Hi! How can I help you today?"
"""What the agent is taken to have said first; the customer answers it."""

STOP = "###STOP###"
USER_STOPS = (STOP, "###TRANSFER###", "###OUT-OF-SCOPE###")

TEXT_IN_SOLO = "LLMSoloAgent only supports tool calls."
EMPTY_TEXT = "AssistantMessage must have either content or tool calls."
UNREAD = "The message is noted. The customer does not answer: all that they say stands in the ticket."
ENDED = "The session has ended."
DONE = "Call this function when you are done with the task."

_DIALOGUE = (
    "You serve the customers of a company. Follow the policy below. Each turn is either one message to the customer "
    "or one tool call, never both."
)
_TICKET = (
    "You serve the customers of a company. Follow the policy below. The ticket holds the instructions by which a "
    "customer would talk to you; 'you' in it means the customer. The customer does not answer: act on what the ticket "
    "says, and take their confirmation as given where the ticket asks for the action. What the customer has to know, "
    "write in a message. When all is done, call `done` and nothing else."
)
_SOLO = (
    "You solve tickets of a company's customers. Follow the policy below. You cannot talk to the customer, only call "
    "tools, those of the customer's phone too. When the ticket is solved, call `done` and nothing else."
)


def agent_instruction(*, has_user: bool, is_solo: bool) -> str:
    """Return how the agent is told to work, before the policy."""
    if has_user:
        return _DIALOGUE
    return _SOLO if is_solo else _TICKET


def agent_system(instruction: str, policy: str) -> str:
    """Return the agent's system prompt."""
    return f"<instructions>\n{instruction}\n</instructions>\n<policy>\n{policy}\n</policy>"


def scenario_text(task: Json) -> str:
    """Return what a customer is told about themselves, laid out as upstream lays it out."""
    scenario = task["user_scenario"]
    instructions = scenario["instructions"]
    told = instructions if isinstance(instructions, str) else _structured(instructions)
    persona = ["Persona:", _indented(scenario["persona"])] if scenario.get("persona") is not None else []
    return "\n".join([*persona, "Instructions:", _indented(told)])


def reason_for_call(task: Json) -> str:
    """Return why the customer calls: what their first message will be about."""
    instructions = task["user_scenario"]["instructions"]
    return instructions if isinstance(instructions, str) else str(instructions["reason_for_call"])


def user_system(guidelines: str, task: Json) -> str:
    """Return the system prompt of a model that plays the customer."""
    return f"{guidelines}\n\n<scenario>\n{scenario_text(task)}\n</scenario>"


def judge_request(expected: list[str], conversation: list[Json]) -> list[Json]:
    """Return the messages that ask a judge which expectations a conversation meets."""
    spoken = "\n".join(f"{message['role']}: {message['content']}" for message in conversation)
    numbered = "\n".join(f"{number}. {text}" for number, text in enumerate(expected, start=1))
    system = (
        "You grade the work of a service agent. You get a conversation between the agent (assistant), a customer "
        "(user) and tools, and a numbered list of expectations. Decide for each alone whether the agent met it. "
        'Answer with JSON and nothing else: {"met": [true, false, ...]}, one value for each expectation, in order.'
    )
    user = f"Conversation:\n{spoken}\n\nExpectations:\n{numbered}"
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _structured(instructions: Json) -> str:
    titles = {"known_info": "Known info", "unknown_info": "Unknown info"}
    optional = [
        f"{title}:\n{_indented(instructions[name])}"
        for name, title in titles.items()
        if instructions.get(name) is not None
    ]
    return "\n".join(
        [
            f"Domain: {instructions['domain']}",
            f"Reason for call:\n{_indented(instructions['reason_for_call'])}",
            *optional,
            f"Task instructions:\n{_indented(instructions['task_instructions'])}",
        ]
    )


def _indented(text: str) -> str:
    return indent(text, "\t")
