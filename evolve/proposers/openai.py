"""The `openai` proposer: a small tool loop of our own over any model that this package can ask.

The model sees two folders and six tools. It can write harness files and nothing else.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson

from evolve.errors import ProposerError
from evolve.prompts import render
from evolve.proposers.desk import Desk, Lookup
from evolve.proposers.transcript import new_transcript
from evolve.protocols import Assignment, Model, ModelRequest, Proposed
from evolve.records import Completion, Json, ProposedCall, Usage
from evolve.secrets import scrub

_SILENT_TURNS = 3


class OpenAIProposer:
    """Lets a model read the evidence, edit harness files, check them, and state its hypothesis.

    Args:
        model: the model that writes the patch; any endpoint, any provider.
        check: lints a harness folder and returns what it found as text.
        replay: drives recorded training episodes through a harness folder and returns a summary as text.
        turn_limit: replies of the model after which the proposer gives up.
        transcripts: folder for the conversation, secrets removed.
        templates: folder of prompts that outrank the packaged ones.
    """

    def __init__(
        self,
        model: Model,
        *,
        check: Lookup,
        replay: Lookup,
        transcripts: Path,
        turn_limit: int = 60,
        templates: Path | None = None,
    ) -> None:
        self._model = model
        self._check = check
        self._replay = replay
        self._transcripts = transcripts
        self._turn_limit = turn_limit
        self._templates = templates

    @property
    def kind(self) -> str:
        """Openai."""
        return "openai"

    async def propose(self, assignment: Assignment) -> Proposed:
        """Run the conversation to its end.

        Returns:
            The proposal, or None where the model says that the evidence supports no patch.

        Raises:
            ProposerError: out of turns or time, or it fell silent with files edited and nothing proposed.
            ProviderError: the endpoint failed.
        """
        desk = Desk(assignment.workspace, assignment.evidence, check=self._check, replay=self._replay)
        messages = self._opening(assignment, desk)
        try:
            async with asyncio.timeout(assignment.timeout_s):
                usage = await self._converse(messages, desk, stream=f"proposer/{assignment.number}")
        except TimeoutError as error:
            raise ProposerError(f"no proposal within {assignment.timeout_s:g} s") from error
        finally:
            transcript = self._write_transcript(assignment, messages)
        return Proposed(desk.proposal, usage=usage, transcript=transcript)

    def _opening(self, assignment: Assignment, desk: Desk) -> list[Json]:
        system = render("openai_proposer.md.j2", templates=self._templates, turn_limit=self._turn_limit)
        user = (assignment.evidence / "brief.md").read_text("utf-8")
        return [{"role": "system", "content": system}, {"role": "user", "content": f"{user}\n\n{desk.list_files()}"}]

    async def _converse(self, messages: list[Json], desk: Desk, *, stream: str) -> Usage:
        usage = Usage()
        silent = 0
        for turn in range(self._turn_limit):
            request = ModelRequest(list(messages), desk.tools(), stream=stream, is_first=turn == 0)
            completion = await self._model.complete(request)
            usage += completion.usage
            messages.append(_assistant(completion))
            for call in completion.calls:
                answer = await asyncio.to_thread(desk.run, call)
                messages.append({"role": "tool", "tool_call_id": call.call_id, "content": answer})
            if desk.is_finished:
                return usage
            silent = 0 if completion.calls else silent + 1
            if silent == _SILENT_TURNS:
                raise ProposerError(f"the model made no tool call in {silent} replies and has proposed nothing")
            if not completion.calls:
                messages.append({"role": "user", "content": _reminder(completion)})
        raise ProposerError(f"no proposal within {self._turn_limit} turns")

    def _write_transcript(self, assignment: Assignment, messages: list[Json]) -> Path:
        path = new_transcript(self._transcripts, assignment, "openai", ".jsonl")
        path.write_bytes(b"".join(orjson.dumps(scrub(message)) + b"\n" for message in messages))
        return path


def _assistant(completion: Completion) -> Json:
    message: Json = {"role": "assistant", "content": completion.text}
    if completion.calls:
        message["tool_calls"] = [_tool_call(call) for call in completion.calls]
    return message


def _tool_call(call: ProposedCall) -> Json:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.tool, "arguments": call.arguments_text},
    }


def _reminder(completion: Completion) -> str:
    if completion.malformed:
        return f"Your tool call could not be read ({completion.malformed}). Write it again."
    return "Go on with a tool call. End with propose, or with nothing_to_propose where the evidence supports no patch."
