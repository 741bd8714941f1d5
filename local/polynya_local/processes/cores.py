"""How many cores this process may use."""

import os
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def cores(cgroups: Path = CGROUPS, own: Path = OWN_CGROUPS) -> int:
    """How many cores this process may use, by affinity and its container's quota; at least 1.

    Args:
        cgroups: where Linux shows the limits of groups of processes, version 1 or 2.
        own: the file that names those of this process.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # only Linux has it
    most = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([most, *(ceil(quota) for quota in _quotas(cgroups, own))]))


def _quotas(cgroups: Path, own: Path) -> Iterator[float]:
    """The quotas of this process, in cores."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "cpu" in controllers.split(","):
                root, read = cgroups / "cpu", _quota_of_version_1
            elif not controllers:
                root, read = cgroups, _quota_of_version_2
            else:
                continue
            # The limits of the groups around a group hold too, and a container may see its own
            # group as the root, whatever its name is outside.
            group = root / path.lstrip("/")
            while group.is_relative_to(root):
                with suppress(OSError, ValueError):  # no such file, or `max` as the quota
                    quota, period = read(group)
                    if quota > 0:
                        yield quota / period
                group = group.parent


def _quota_of_version_1(group: Path) -> tuple[int, int]:
    """Quota and period, in microseconds; -1: there is no quota."""
    quota, period = (group / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
    return int(quota.read_text()), int(period.read_text())


def _quota_of_version_2(group: Path) -> tuple[int, int]:
    quota, period = (group / "cpu.max").read_text().split()
    return int(quota), int(period)
