"""The jars with which Spark reads Iceberg, in a cache: of the checkout, else of the user.

`python -m polynya_local.clients.spark_jars` downloads them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .. import checkout

ICEBERG = "1.11.0"
ARTIFACTS = (
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
    f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG}",
)
CACHE = (
    checkout.ROOT / ".cache/jars"
    if checkout.IS_CHECKOUT
    else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "polynya/jars"
)
FETCH = "`make setup`" if checkout.IS_CHECKOUT else "`python -m polynya_local.clients.spark_jars`"
SECONDS = 900  # about 110 MB


def jars() -> list[Path] | None:
    """The paths of the jars; None: one is missing."""
    paths = [CACHE / file_name(artifact) for artifact in ARTIFACTS]
    return paths if all(path.exists() for path in paths) else None


def why_not() -> str | None:
    """The reason why Spark cannot read Iceberg on this machine; None: it can."""
    if not shutil.which("java"):
        return "Spark needs Java 17 or 21, and there is no `java` on PATH"
    if jars() is None:
        return f"the Iceberg jars are not here: {FETCH} fetches them"
    return None


def file_name(artifact: str) -> str:
    """The file name of a Maven artifact, `group:name:version`."""
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def fetch() -> None:
    """Download each missing jar into the cache, with Maven or else with Spark's own resolver."""
    if jars() is not None:
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    missing = [a for a in ARTIFACTS if not (CACHE / file_name(a)).exists()]
    print(f"Fetching {', '.join(map(file_name, missing))} ...", file=sys.stderr, flush=True)
    if not all(_with_maven(artifact) for artifact in missing):
        _with_spark(missing)
    shutil.rmtree(CACHE / "part", ignore_errors=True)
    if jars() is None:
        raise SystemExit("The Iceberg jars could not be fetched; only the Spark tests need them.")
    print(f"Iceberg {ICEBERG} for Spark is in {CACHE}", file=sys.stderr)


def _with_maven(artifact: str) -> bool:
    """Whether Maven found the jar; it searches its own repository first, without the network."""
    maven = shutil.which("mvn")
    if maven is None:
        return False
    part = CACHE / "part"
    copy = [f"-Dartifact={artifact}", f"-DoutputDirectory={part}", "dependency:copy"]
    for network in (["--offline"], []):
        command = [maven, "--quiet", "--batch-mode", *network, *copy]
        result = subprocess.run(command, timeout=SECONDS, capture_output=True, check=False)
        if result.returncode == 0 and (part / file_name(artifact)).exists():
            _into_cache(part / file_name(artifact))
            return True
    return False


def _with_spark(artifacts: list[str]) -> None:
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
        for found in ivy.rglob(file_name(artifact)):
            _into_cache(found)
            break
    shutil.rmtree(ivy, ignore_errors=True)


def _into_cache(jar: Path) -> None:
    """Move a complete jar into the cache, atomically."""
    jar.rename(CACHE / jar.name)


if __name__ == "__main__":
    fetch()
