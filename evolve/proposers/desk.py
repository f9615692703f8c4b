"""The tools of the `openai` proposer: two folders seen through a slot, with no way out of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from evolve.harness.check import PROPOSAL_FILE
from evolve.proposers.proposal_file import fingerprint, tidied, what_is_wrong
from evolve.records import Json, Layer, Proposal, ProposedCall, Tool
from evolve.repository import MOST_FILES

Lookup = Callable[[Path], str]
"""A question about a harness folder that is answered in text."""

_READ = 16_000
_WRITE = 64 * 1024
_ANSWER = 16_000
_FILES = 200
_DEEPEST = 8


class Refused(Exception):
    """A call that the desk does not carry out; the message goes to the model."""


class Desk:
    """What a model can do to a workspace.

    Args:
        workspace: the harness folder to edit.
        evidence: the folder to read from.
        check: lints the workspace.
        replay: drives recorded episodes through the workspace.
    """

    def __init__(self, workspace: Path, evidence: Path, *, check: Lookup, replay: Lookup) -> None:
        self._roots = {"workspace": workspace, "evidence": evidence}
        self._check = check
        self._replay = replay
        self._before = fingerprint(workspace)
        self.is_finished = False
        self.proposal: Proposal | None = None

    def tools(self) -> list[Json]:
        """Return the function schemas."""
        return [tool.function_schema() for tool in _TOOLS]

    def run(self, call: ProposedCall) -> str:
        """Carry out one call; whatever is wrong with it is the answer."""
        actions: dict[str, Callable[..., str]] = {
            "list_files": self.list_files,
            "read_file": self.read_file,
            "write_file": self.write_file,
            "check": lambda: self._check(self._roots["workspace"])[:_ANSWER],
            "replay": lambda: self._replay(self._roots["workspace"])[:_ANSWER],
            "propose": self.propose,
            "nothing_to_propose": self.nothing_to_propose,
        }
        if call.tool not in actions:
            return f"There is no tool {call.tool!r}. There are: {', '.join(actions)}."
        arguments = call.arguments
        wrong = _wrong_arguments(call.tool, arguments)
        if arguments is None or wrong:
            return wrong
        try:
            return actions[call.tool](**arguments)
        except Refused as refused:
            return str(refused)
        except OSError as error:
            return f"Failed: {error.strerror or error}."
        except UnicodeError:
            return "Failed: that is no name that a file can have."

    def list_files(self) -> str:
        """List the files of both folders with their sizes."""
        lines = [
            f"{name}/{path.relative_to(root).as_posix()} ({path.stat().st_size} bytes)"
            for name, root in self._roots.items()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink() and not _is_hidden(path.relative_to(root))
        ]
        return "\n".join(["Files:", *lines[:_FILES]])

    def read_file(self, path: str, offset: int = 0) -> str:
        """Return part of a file."""
        text = self._resolve(path).read_bytes().decode("utf-8", errors="replace")
        offset = max(offset, 0)
        piece = text[offset : offset + _READ]
        left = len(text) - offset - len(piece)
        return piece + (f"\n[{left} more characters; read on at offset {offset + len(piece)}]" if left > 0 else "")

    def write_file(self, path: str, content: str) -> str:
        """Write a whole file of the workspace."""
        target = self._resolve(path)
        if not target.is_relative_to(self._roots["workspace"]):
            raise Refused("Only files under workspace/ can be written.")
        if target == self._roots["workspace"] / PROPOSAL_FILE:
            raise Refused("Call propose; there is no need to write that file.")
        raw = content.encode("utf-8", errors="replace")
        if len(raw) > _WRITE:
            raise Refused(f"{len(raw)} bytes; a file may have {_WRITE}.")
        if not target.exists() and len(self._written()) >= MOST_FILES:
            raise Refused(f"The workspace holds {MOST_FILES} files, and a harness may have no more.")
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        return f"Wrote {len(raw)} bytes to {path}."

    def _written(self) -> list[Path]:
        return [path for path in self._roots["workspace"].rglob("*") if path.is_file()]

    def propose(self, **fields: object) -> str:
        """Take the proposal and end the conversation."""
        if fingerprint(self._roots["workspace"]) == self._before:
            raise Refused("No harness file was changed yet: edit first, or call nothing_to_propose.")
        try:
            self.proposal = tidied(Proposal.model_validate(fields))
        except ValidationError as error:
            raise Refused(f"Not a valid proposal: {what_is_wrong(error)}") from error
        self.is_finished = True
        return "Taken."

    def nothing_to_propose(self, reason: str) -> str:
        """End the conversation without a patch."""
        if fingerprint(self._roots["workspace"]) != self._before:
            raise Refused("Harness files were changed: propose the change, or undo it first.")
        self.is_finished = True
        return f"Taken: {reason}"

    def _resolve(self, path: str) -> Path:
        """Return the real place of `workspace/...` or `evidence/...`, or refuse."""
        root_name, *parts = PurePosixPath(path).parts or ("",)
        is_named = root_name in self._roots and 0 < len(parts) <= _DEEPEST and ".." not in parts and "\0" not in path
        if not is_named or _is_hidden(Path(*parts)):
            raise Refused("A path begins with workspace/ or evidence/ and names a file below it.")
        place = self._roots[root_name]
        for part in parts:
            place = place / part
            if place.is_symlink():
                raise Refused(f"{path} is a link, and links are not followed.")
        if place.exists() and not place.is_file():
            raise Refused(f"{path} is not a file.")
        return place


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _wrong_arguments(tool_name: str, arguments: Json | None) -> str:
    """Return what is wrong with the arguments of a call, or an empty string."""
    if arguments is None:
        return "The arguments are not a JSON object."
    schema = next(tool.parameters for tool in _TOOLS if tool.name == tool_name)
    known: Json = schema["properties"]
    missing = [name for name in schema["required"] if name not in arguments]
    unknown = [name for name in arguments if name not in known]
    wrong = [name for name, value in arguments.items() if name in known and not _has_type(value, known[name]["type"])]
    problems = [("missing", missing), ("unknown", unknown), ("of the wrong type", wrong)]
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in problems if names)


def _has_type(value: object, name: str) -> bool:
    types: dict[str, type] = {"string": str, "integer": int, "array": list}
    return isinstance(value, types[name]) and not isinstance(value, bool)


def _tool(name: str, description: str, **properties: Json) -> Tool:
    required = [key for key, schema in properties.items() if "default" not in schema]
    return Tool(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
    )


_PATH: Json = {"type": "string", "description": "workspace/... or evidence/..."}
_TASKS: Json = {"type": "array", "items": {"type": "string"}}
_TOOLS = (
    _tool("list_files", "List the files of the workspace and of the evidence."),
    _tool(
        "read_file",
        f"Read a file, {_READ} characters at a time.",
        path=_PATH,
        offset={"type": "integer", "default": 0, "minimum": 0},
    ),
    _tool("write_file", "Write a whole file of the workspace.", path=_PATH, content={"type": "string"}),
    _tool("check", "Lint the harness in the workspace. Do it after each edit."),
    _tool("replay", "Drive the recorded training episodes through the edited rules: where they would fire."),
    _tool(
        "propose",
        "Hand in the patch as it lies in the workspace and end.",
        hypothesis={"type": "string", "description": "one cause and why the patch removes it, 10 to 600 characters"},
        layer={"type": "string", "enum": [layer.value for layer in Layer]},
        pattern_id={"type": "string", "description": "the pattern that the patch is for"},
        predicts_fixed={**_TASKS, "description": "failing training tasks that will succeed"},
        at_risk={**_TASKS, "description": "successful training tasks that the patch may break", "default": []},
    ),
    _tool("nothing_to_propose", "End without a patch.", reason={"type": "string"}),
)
