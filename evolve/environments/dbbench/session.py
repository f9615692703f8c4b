"""One task being worked on: SQL goes to the engine, the answer is judged the moment it is committed."""

from __future__ import annotations

from collections.abc import Sequence

from evolve.environments.dbbench.engines import Database
from evolve.environments.dbbench.entries import Entry
from evolve.environments.dbbench.scoring import is_right, score
from evolve.records import Call, ErrorKind, Observation, Opening, Score, Tool

SYSTEM = (
    "You work on a MySQL database by calling tools. The user tells you about one table and asks a question about it, "
    "or asks for a change of it. First think about what is needed. Then run SQL with execute_sql, one statement per "
    "call and on one line; you get the raw response of MySQL, long ones cut. Names with spaces or special characters "
    "go in backticks. When you are done, call commit_final_answer once; that ends the task. For a question the answer "
    "must be exactly the values asked for and nothing else; for a change, make it with SQL first and then commit any "
    "answer. Never write an answer or SQL as plain text: only tool calls count."
)
EXECUTE = Tool(
    name="execute_sql",
    description="Run one MySQL statement and get the raw response.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "description": "one SQL statement on one line"}},
        "required": ["query"],
    },
)
COMMIT = Tool(
    name="commit_final_answer",
    description="Commit the final answer and end the task. After a change of the database it may be anything.",
    parameters={
        "type": "object",
        "properties": {
            "answers": {"type": "array", "items": {"type": "string"}, "description": "each value of the answer"}
        },
        "required": ["answers"],
    },
)
TOOLS = (EXECUTE, COMMIT)

NO_CALL = "Internal error: No tool calls found despite finish reason."
NO_SUCH_TOOL = "Invalid function call. Please call a tool instead."
BAD_FORMAT = "Error: Failed to parse tool call. Tool call format is incorrect."
COMMITTED = "The answer is committed."
CLOSED = "The answer was committed before; nothing more is run."
NOT_READ_ONLY = "No tool of this environment is read-only."


class DbSession:
    """A session on one entry; its database is its own."""

    def __init__(self, entry: Entry, database: Database, engine: str) -> None:
        self._entry = entry
        self._database = database
        self._engine = engine
        self._verdict: bool | None = None

    @property
    def opening(self) -> Opening:
        """How the tools are to be used, and the question."""
        return Opening(system=SYSTEM, user=self._entry.text)

    @property
    def tools(self) -> Sequence[Tool]:
        """One tool for SQL, one for the answer; SQL may change the table, so none is read-only."""
        return TOOLS

    def step(self, call: Call) -> Observation:
        """Run a statement or judge an answer; arguments beside the tool's own are not looked at."""
        if self._verdict is not None:
            return _closed()
        if call.tool == EXECUTE.name:
            return self._execute(call.arguments.get("query"))
        if call.tool == COMMIT.name:
            return self._commit(call.arguments.get("answers"), is_given="answers" in call.arguments)
        return Observation(text=NO_SUCH_TOOL, error_kind=ErrorKind.UNKNOWN_TOOL)

    def say(self, text: str) -> Observation:
        """Take a plain message, which nobody reads."""
        if self._verdict is not None:
            return _closed()
        return Observation(text=NO_CALL, error_kind=ErrorKind.MALFORMED_CALL)

    def probe(self, call: Call) -> Observation:
        """Refuse: a statement may change the table."""
        return Observation(text=NOT_READ_ONLY, error_kind=ErrorKind.REJECTED)

    def score(self) -> Score:
        """Score the answer that was committed; without one the score is 0."""
        return score(self._verdict, self._engine)

    def close(self) -> None:
        """Remove the database."""
        self._database.close()

    def _execute(self, query: object) -> Observation:
        if not isinstance(query, str):
            return Observation(text=BAD_FORMAT, error_kind=ErrorKind.INVALID_ARGS)
        reply = self._database.run(query)
        return Observation(text=reply.text, error_kind=reply.error_kind)

    def _commit(self, answer: object, *, is_given: bool) -> Observation:
        if not is_given:
            return Observation(text=BAD_FORMAT, error_kind=ErrorKind.INVALID_ARGS)
        self._verdict = is_right(self._entry, answer, self._database)
        return Observation(text=COMMITTED, done=True)


def _closed() -> Observation:
    return Observation(text=CLOSED, error_kind=ErrorKind.NO_EFFECT, done=True)
