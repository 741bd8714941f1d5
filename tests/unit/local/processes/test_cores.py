"""The cores of a process, with folders as Linux shows the limits of containers."""

import os

import pytest
from polynya_local.processes.cores import cores

AFFINITY = 12


@pytest.fixture(autouse=True)
def affinity(monkeypatch):
    """A process that is let onto twelve cores of a machine with more."""
    allowed = lambda process: set(range(AFFINITY))  # noqa: E731
    monkeypatch.setattr(os, "sched_getaffinity", allowed, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("", {}, AFFINITY),
        ("0::/\n", {}, AFFINITY),  # the root of a machine has no such file
        # Version 2.
        ("0::/\n", {"cpu.max": "max 100000\n"}, AFFINITY),
        ("0::/\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "9900000 100000\n"}, AFFINITY),
        ("0::/a/b\n", {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "max 100000\n"}, 3),
        ("0::/a/b\n", {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
        ("0::/docker/0123\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/a\n", {"cpu.max": "what\n", "a/cpu.max": ""}, AFFINITY),
        # Version 1, also beside 2.
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, AFFINITY),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        (
            "4:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "50000", "cpu/cpu.cfs_period_us": "25000"},
            2,
        ),
        (
            "3:cpu,cpuacct:/pods/1\n",
            {
                "cpu/pods/1/cpu.cfs_quota_us": "-1",
                "cpu/pods/1/cpu.cfs_period_us": "100000",
                "cpu/pods/cpu.cfs_quota_us": "500000",
                "cpu/pods/cpu.cfs_period_us": "100000",
            },
            5,
        ),
        ("1:cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "1"}, AFFINITY),
    ],
)
def test_affinity_and_quota_are_minded(tmp_path, own, files, expected):
    groups = tmp_path / "groups"
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text)
    (tmp_path / "own").write_text(own)
    assert cores(groups, tmp_path / "own") == expected


def test_other_systems_have_neither(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores(tmp_path / "none", tmp_path / "none") == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores(tmp_path / "none", tmp_path / "none") == 1
