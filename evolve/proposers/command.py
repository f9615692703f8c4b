"""The `command` proposer: any coding-agent CLI, run headless in the workspace and shut in where the machine can.

What it says it did counts for nothing: the edit is read from the workspace, the idea from proposal.json.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from evolve.errors import ProposerError, UserError
from evolve.prompts import render
from evolve.proposers.agents import AgentRow, EventReader
from evolve.proposers.headless import Finished, run_headless, shortened
from evolve.proposers.proposal_file import fingerprint, read_proposal
from evolve.proposers.sandbox import UNPROTECTED, Enclosure
from evolve.proposers.sandbox.installed import canonical
from evolve.proposers.transcript import new_transcript
from evolve.protocols import Assignment, Proposed
from evolve.repository import start_throwaway_history
from evolve.secrets import remove_secrets

CHECK_COMMAND = "evolve harness check ."
PASSED_ON = frozenset(
    """PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TERM TZ TMPDIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME
    XDG_STATE_HOME SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy
    no_proxy""".split()  # noqa: SIM905  a list of names reads better as text
)
"""Variables that every agent gets; all else, other credentials above all, is left out."""


class CommandProposer:
    """Runs one coding agent.

    Args:
        row: how the agent is started and how its usage is read.
        environ: the host's environment, of which the agent gets a small part.
        transcripts: folder for what the agent printed, secrets removed.
        model: name of the model it shall use; None leaves that to the agent's own configuration.
        templates: folder of prompts that outrank the packaged ones.
        enclosure: what shuts it in; None runs it UNPROTECTED, with all that the user can reach.
    """

    def __init__(
        self,
        row: AgentRow,
        *,
        environ: Mapping[str, str],
        transcripts: Path,
        model: str | None = None,
        templates: Path | None = None,
        enclosure: Enclosure | None = None,
    ) -> None:
        self._row = row
        self._environ = environ
        self._transcripts = transcripts
        self._model = model
        self._templates = templates
        self._enclosure = enclosure

    @property
    def kind(self) -> str:
        """command:NAME."""
        return f"command:{self._row.name}"

    @property
    def sandbox(self) -> str:
        """What the record of a candidate says of how the agent was shut in."""
        return self._enclosure.kind(self._row) if self._enclosure else UNPROTECTED

    def find_program(self) -> Path:
        """Return where the agent's program really lies.

        Raises:
            UserError: it is not installed.
        """
        found = shutil.which(self._row.program, path=self._search_path())
        if found is None:
            raise UserError(
                f"{self._row.title} is not installed: no program {self._row.program!r}; {self._row.install}"
            )
        return canonical(Path(found))

    def require_way_out(self) -> None:
        """Refuse settings with which no agent could be let out to its model.

        Raises:
            ConfigError: an address in them is none, or the user's own proxy is one that is not spoken to.
        """
        if self._enclosure:
            self._enclosure.gateway(self._row, self._agent_environ())

    async def propose(self, assignment: Assignment) -> Proposed:
        """Run the agent in the workspace and read back what it did.

        Raises:
            UserError: the program is not installed.
            ProposerError: it failed, timed out, or edited files without a valid proposal.json.
        """
        argv = self._command(assignment)
        start_throwaway_history(assignment.workspace)
        before = fingerprint(assignment.workspace)
        events = EventReader(self._row)
        transcript = new_transcript(self._transcripts, assignment, self._row.name, ".log")
        try:
            finished, trouble = await self._run(argv, assignment, transcript, events)
        except OSError as error:
            raise ProposerError(f"{self._row.title} cannot be started: {error}") from error
        self._refuse_failure(finished, events.failure, assignment, transcript, trouble)
        changed = fingerprint(assignment.workspace) != before
        proposal = read_proposal(assignment.workspace) if changed else None
        return Proposed(proposal, usage=events.usage, transcript=transcript, sandbox=self.sandbox)

    async def _run(
        self, argv: list[str], assignment: Assignment, transcript: Path, events: EventReader
    ) -> tuple[Finished, str]:
        """Run the agent, in its room where there is one; return also whom it did not reach, in words."""
        environ = self._agent_environ()
        if self._enclosure is None:
            return await self._run_headless(argv, assignment, transcript, events, environ), ""
        async with self._enclosure.enter(self._row, argv[0], assignment, environ) as room:
            finished = await self._run_headless(room.command(argv), assignment, transcript, events, room.environ)
            return finished, room.trouble()

    async def _run_headless(
        self,
        argv: list[str],
        assignment: Assignment,
        transcript: Path,
        events: EventReader,
        environ: Mapping[str, str],
    ) -> Finished:
        return await run_headless(
            argv,
            cwd=assignment.workspace,
            environ=environ,
            timeout_s=assignment.timeout_s,
            transcript=transcript,
            secrets=self._secrets(),
            on_line=events.read,
            title=f"{self._row.title}, sandbox: {self.sandbox}",
        )

    def _secrets(self) -> list[str]:
        return [self._environ[name] for name in self._row.keys if self._environ.get(name)]

    def _command(self, assignment: Assignment) -> list[str]:
        program = self.find_program()
        prompt = task_prompt(assignment, self._templates)
        prompt_file = assignment.evidence / "task.md"
        prompt_file.write_text(prompt, "utf-8")
        places = {
            "{prompt}": prompt,
            "{prompt_file}": str(prompt_file),
            "{workspace}": str(assignment.workspace),
            "{evidence}": str(assignment.evidence),
        }
        return self._row.command(str(program), model=self._model, places=places, is_shut_in=self._enclosure is not None)

    def _search_path(self) -> str:
        """Return PATH with our own programs first, so that the agent can run the check that its task names."""
        return os.pathsep.join(
            [str(Path(sys.executable).parent), self._environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")]
        )

    def _agent_environ(self) -> dict[str, str]:
        names = PASSED_ON | {*self._row.keys, *self._row.variables}
        kept = {name: value for name, value in self._environ.items() if name in names}
        return {**kept, **self._row.set_variables, "PATH": self._search_path()}

    def _refuse_failure(
        self, finished: Finished, failure: str, assignment: Assignment, transcript: Path, trouble: str
    ) -> None:
        """Refuse what an agent left that did not come to its end, in its own words where it had some."""
        kept_from = f"; {trouble}" if trouble else ""
        words = shortened(remove_secrets(failure, self._secrets()))
        if finished.is_timeout:
            last_error = f"; its last error: {words}" if words else ""
            stopped = f"{self._row.title} was stopped after {assignment.timeout_s:g} s"
            raise ProposerError(f"{stopped}{last_error}{kept_from}; see {transcript}")
        if finished.exit_code != 0:
            said = f": {words or finished.last_line}" if words or finished.last_line else ""
            raise ProposerError(
                f"{self._row.title} ended with exit code {finished.exit_code}{said}{kept_from}; see {transcript}"
            )


def task_prompt(assignment: Assignment, templates: Path | None = None) -> str:
    """Return what a coding agent, or a person, is asked to do."""
    return render(
        "agent_task.md.j2",
        templates=templates,
        workspace=assignment.workspace,
        evidence=assignment.evidence,
        check=CHECK_COMMAND,
    )
