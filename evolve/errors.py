"""The error tree. Imports nothing; the message of a user error is all that a user needs to see."""


class EvolveError(Exception):
    """Root of all errors raised on purpose. `exit_code` is what the command line ends with."""

    exit_code = 1


class UserError(EvolveError):
    """Something the user can mend: a wrong name, a broken file, a dirty tree. Exit code 2."""

    exit_code = 2


class ConfigError(UserError):
    """A configuration value is missing, unknown or of the wrong kind; names the value and its source."""


class HarnessError(UserError):
    """A harness folder does not read: names the file and, where there is one, the line."""


class RepositoryError(UserError):
    """The git side is not in the state an operation needs: not a repository, dirty, a conflicting commit."""


class WorkspaceBusy(UserError):
    """Another evolve process holds the workspace; names it."""


class SealError(UserError):
    """A held-out task was asked for without a recorded look, or a seal does not match its digest."""


class RulerChanged(UserError):
    """What a run measures with is no longer what it was at its start; names what changed. Nothing is scored."""


class CanaryFound(EvolveError):
    """A string that lies in sealed places only was seen elsewhere: something came out. Exit code 6.

    `arm` is the id of the candidate whose episode held it, "" for the incumbent, None where it was in no episode.
    """

    exit_code = 6

    def __init__(self, message: str, *, arm: str | None = None) -> None:
        super().__init__(message)
        self.arm = arm


class InfrastructureError(EvolveError):
    """The world failed, not the agent: retried, never scored. Exit code 4."""

    exit_code = 4


class ProviderError(InfrastructureError):
    """A model endpoint cannot be reached, refuses, or answers with something that is not a completion."""


class UnseenRequestError(ProviderError):
    """A recorded model was asked something that is not in its recording."""


class WorkerError(InfrastructureError):
    """A rule worker could not be started. A rule that misbehaves is a fault in the record, not this error."""


class ControlFailed(InfrastructureError):
    """The incumbent differs from itself (A/A control): something besides the harness moves the scores."""


class EnvironmentBroken(InfrastructureError):
    """An environment broke; what an environment says to an agent is an observation, not this error."""


class ProposerError(InfrastructureError):
    """A proposer crashed, timed out or returned nothing usable."""


class StoreError(InfrastructureError):
    """The ledger or a trace file cannot be read or written."""


class BudgetSpent(EvolveError):
    """A budget of money, tokens or time is used up; what was done is kept. Exit code 5."""

    exit_code = 5


class Interrupted(EvolveError):
    """The user asked for a clean end (Ctrl-C or a STOP file). Exit code 130."""

    exit_code = 130
