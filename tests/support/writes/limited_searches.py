"""Searches for rows by key that take longer than a request may."""

from dataclasses import replace

from polynya.commits.plan import equality_deletes
from polynya.commits.plan.existing_table import Planner
from polynya.runtime.errors import OutOfTime
from polynya_local.cache_folder import CacheFolder


class LimitedSearches:
    """Lets a request search two files, one after the other."""

    def __init__(self, monkeypatch, folder):
        self.plans = self.searched = 0
        self.at_a_time = 2
        self._left = 0
        self._store, self._plan = CacheFolder(folder).store("lake"), Planner.plan
        self._search = equality_deletes.rows_with_keys
        monkeypatch.setattr(Planner, "plan", lambda *arguments: self.plan(*arguments))
        monkeypatch.setattr(equality_deletes, "rows_with_keys", self.search)
        monkeypatch.setattr(equality_deletes, "FILES_AT_A_TIME", 1)
        monkeypatch.setattr(equality_deletes, "LONG_SECONDS", 0)

    def plan(self, planner, *arguments):
        self.plans += 1
        self._left = self.at_a_time
        return self._plan(replace(planner, searches=self._store), *arguments)

    def search(self, bodies, key, files):
        if not self._left:
            raise OutOfTime("no time")
        self._left -= 1
        self.searched += 1
        return self._search(bodies, key, files)
