"""The lakes of a function, which its environment names."""

from collections.abc import Callable, Mapping
from typing import Any, Generic

from ..catalog.lakes import Lakes, Opened, Shared
from ..runtime.settings import Config, settings_in
from ..storage.aws import Clients


class FunctionLakes(Generic[Opened]):
    """Makes the lakes of a function when an event first needs them, and keeps them.

    Not when the function starts: with a setting that is wrong, each event gets it as the answer.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        open_lake: Callable[[Config, Lakes[Any]], Opened],
        complete: Callable[[Config, Clients], Config] = lambda config, aws: config,
        *,
        commits: bool = False,
    ) -> None:
        """Keep the settings as they are now; nothing is checked yet.

        Args:
            environ: has the settings.
            open_lake: as `Lakes` has it.
            complete: adds to the settings what has to be asked for.
            commits: for the function that writes.
        """
        self._settings = settings_in(environ)
        self._open_lake, self._complete, self._commits = open_lake, complete, commits
        self.aws = Clients()
        self._lakes: Lakes[Opened] | None = None

    def __call__(self) -> Lakes[Opened]:
        """The lakes; no database is connected yet.

        Raises:
            Misconfigured: a setting is missing or not usable.
            PolynyaError: what `complete` raises.
        """
        if self._lakes is None:
            config = self._complete(Config.from_env(self._settings), self.aws)
            self._lakes = Lakes(
                config,
                self._open_lake,
                environ=self._settings,
                commits=self._commits,
                shared=Shared(aws=self.aws),
            )
        return self._lakes

    def prepare(self) -> None:
        """Open what can be opened without asking anybody anything. Raises: as a call."""
        self().prepare()

    def close(self) -> None:
        """Close all databases that are open, and forget the lakes."""
        if self._lakes is not None:
            self._lakes.close()
            self._lakes = None
