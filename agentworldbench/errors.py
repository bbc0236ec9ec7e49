"""The one tree of errors a user can meet, one line each; `cli/` exits with their codes; all else is a bug.

AwbError (2)
├── ConfigError            flags, configuration files, incompatible run directory
├── TaskError              a task YAML
├── DataError, BundleError a data folder, file or row; a bundle of another person
├── CredentialsError       a missing or refused key
├── EndpointError          an endpoint that cannot be reached or has no such model
├── QuotaError (5)         the account's quota is exhausted
├── StoreError (1)         a run directory, or the cache, that cannot be read or written
├── ScoringError (1)       a process that computed metrics has died
└── Interrupted (130)      stopped by the user; what is done stays
"""

from __future__ import annotations


class AwbError(Exception):
    """Base of all expected errors. `exit_code` is what the command line exits with."""

    exit_code = 2


class ConfigError(AwbError):
    """Wrong or contradictory configuration, or a run directory made with another one."""


class TaskError(AwbError):
    """A task file that is not what `task.py` describes; the message carries file:line."""


class DataError(AwbError):
    """Data that is missing or malformed; the message carries file:line where there is one."""


class BundleError(AwbError):
    """A bundle of another person that is refused. `kind` names the fault (`submission/unpack.py` lists them)."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class CredentialsError(AwbError):
    """A key is missing in the environment or was refused by the endpoint."""


class EndpointError(AwbError):
    """An endpoint could not be reached, or does not serve the model asked for."""


class QuotaError(AwbError):
    """The provider says that the account has no quota left."""

    exit_code = 5


class StoreError(AwbError):
    """A run directory, or the cache of official files, that cannot be read, locked or written."""

    exit_code = 1


class ScoringError(AwbError):
    """A process that computed metrics has died; the message names the sample it was at."""

    exit_code = 1


class Interrupted(AwbError):
    """The user stopped the run; everything journaled stays and the same command continues."""

    exit_code = 130
