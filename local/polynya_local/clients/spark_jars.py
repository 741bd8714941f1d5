"""The jars with which Spark reads Iceberg, in the cache of the checkout, or else of the user.

`python -m polynya_local.clients.spark_jars` downloads them.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from .. import IS_CHECKOUT, ROOT

ICEBERG = "1.11.0"
SHA256 = {
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}": (
        "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242"
    ),
    f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}": (
        "38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f"
    ),
}
"""The hash of each artifact's jar; no other bytes are put on Spark's class path."""
ARTIFACTS = tuple(SHA256)

CACHE = (
    ROOT / ".cache/jars"
    if IS_CHECKOUT
    else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "polynya/jars"
)
FETCH = "`make setup`" if IS_CHECKOUT else "`python -m polynya_local.clients.spark_jars`"
SECONDS = 900  # about 110 MB


def jars() -> list[Path] | None:
    """The paths of the jars; None: one is missing, or has another hash."""
    return None if _missing() else [CACHE / file_name(artifact) for artifact in ARTIFACTS]


def _missing() -> list[str]:
    """The artifacts that are not in the cache."""
    return [name for name in ARTIFACTS if not is_genuine(CACHE / file_name(name), SHA256[name])]


def is_genuine(path: Path, digest: str) -> bool:
    """Whether a file is there, with this SHA-256."""
    if not path.exists():
        return False
    status = path.stat()
    return _sha256_once(path, status.st_size, status.st_mtime_ns) == digest


@cache
def _sha256_once(path: Path, size: int, modified: int) -> str:
    """The SHA-256 of a file, which is read again only if its size or time has changed."""
    return sha256(path)


def sha256(path: Path) -> str:
    """The hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def why_not() -> str | None:
    """The reason why Spark cannot read Iceberg on this machine; None: it can."""
    if not shutil.which("java"):
        return "Spark needs Java 17 or 21, and there is no `java` on PATH"
    if jars() is None:
        return f"the Iceberg jars are not here, or have other bytes: {FETCH} fetches them"
    return None


def file_name(artifact: str) -> str:
    """The file name of a Maven artifact, `group:name:version`."""
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def fetch() -> None:
    """Download each missing jar into the cache, with Maven or else with Spark's own resolver."""
    missing = _missing()
    if not missing:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"Fetching {', '.join(map(file_name, missing))} ...", file=sys.stderr, flush=True)
    if not all(fetch_with_maven(artifact, SHA256[artifact]) for artifact in missing):
        _fetch_with_spark(missing)
    shutil.rmtree(CACHE / "part", ignore_errors=True)
    if jars() is None:
        raise SystemExit(
            "The Iceberg jars could not be fetched, or have another SHA-256 than they should have; "
            "only the Spark tests need them."
        )
    print(f"Iceberg {ICEBERG} for Spark is in {CACHE}", file=sys.stderr)


def fetch_with_maven(artifact: str, digest: str) -> bool:
    """Whether Maven found the jar; it searches its own repository first, without the network."""
    maven = shutil.which("mvn")
    if maven is None:
        return False
    part = CACHE / "part"
    copy = [f"-Dartifact={artifact}", f"-DoutputDirectory={part}", "dependency:copy"]
    for network in (["--offline"], []):
        command = [maven, "--quiet", "--batch-mode", "--strict-checksums", *network, *copy]
        result = subprocess.run(command, timeout=SECONDS, capture_output=True, check=False)
        if result.returncode == 0 and (part / file_name(artifact)).exists():
            return _move_into_cache(part / file_name(artifact), digest)
    return False


def _fetch_with_spark(artifacts: list[str]) -> None:
    """Start Spark, which resolves the artifacts, and take the jars from its Ivy cache."""
    if not shutil.which("java"):
        return
    ivy = CACHE / "ivy"
    program = (
        "from pyspark.sql import SparkSession as S\n"
        "b = S.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".config('spark.driver.bindAddress', '127.0.0.1').config('spark.driver.host', '127.0.0.1')"
        f".config('spark.jars.ivy', {str(ivy)!r})"
        f".config('spark.jars.packages', {','.join(artifacts)!r})\n"
        "b.getOrCreate().stop()\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=SECONDS, check=False)
    for artifact in artifacts:
        for jar in ivy.rglob(file_name(artifact)):
            _move_into_cache(jar, SHA256[artifact])
            break
    shutil.rmtree(ivy, ignore_errors=True)


def _move_into_cache(jar: Path, digest: str) -> bool:
    """Move a jar into the cache, atomically, if it has this SHA-256; returns whether it has."""
    if not is_genuine(jar, digest):
        return False
    jar.rename(CACHE / jar.name)
    return True


if __name__ == "__main__":
    fetch()
