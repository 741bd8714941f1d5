"""The lakes of a function, which its environment names."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic

from ..catalog.lakes import Lakes, Opened, Shared
from ..runtime.settings import Config, settings_in
from ..storage.aws import Clients
from ..storage.file_cache import resolve_bucket


class FunctionLakes(Generic[Opened]):
    """Opens the lakes of a function when an event first needs them, and keeps them.

    It does not open them when the function starts, so that each event gets a wrong setting as its
    answer.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        open_lake: Callable[[Config, Lakes[Any]], Opened],
        *,
        commits: bool = False,
    ) -> None:
        """Keep the current settings, unchecked.

        Args:
            environ: has the settings.
            open_lake: as `Lakes` has it.
            commits: for the function that writes.
        """
        self._settings = settings_in(environ)
        self._open_lake, self._commits = open_lake, commits
        self.aws = Clients()
        self._lakes: Lakes[Opened] | None = None

    def __call__(self) -> Lakes[Opened]:
        """The lakes; no database is connected yet.

        Raises:
            Misconfigured: a setting is missing or not usable.
            ServiceUnavailable: SSM, which a setting names, does not answer.
        """
        if self._lakes is None:
            config = Config.from_env(self._settings)
            config = replace(config, storage=resolve_bucket(config.storage, self.aws))
            self._lakes = Lakes(
                config,
                self._open_lake,
                environ=self._settings,
                commits=self._commits,
                shared=Shared(aws=self.aws),
            )
        return self._lakes

    def prepare(self) -> None:
        """Open all that needs no request. Raises: as a call."""
        self().prepare()

    def close(self) -> None:
        """Close all databases that are open, and forget the lakes."""
        if self._lakes is not None:
            self._lakes.close()
            self._lakes = None
