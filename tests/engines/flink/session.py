"""Programs for Flink, each in a JVM of its own with Flink's mini cluster.

`python -m tests.engines.flink.session` fetches the jars with Maven (270 MB) and compiles them.
"""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from polynya_local.processes.serving import KEY_ID, REGION, SECRET, Bridge

HERE = Path(__file__).parent
TARGET = Path(__file__).parents[3] / ".cache" / "engines" / "flink"
VERSION = "2.1.1"
SECONDS = 900
OPENED = (
    "java.lang", "java.lang.reflect", "java.net", "java.nio", "java.text", "java.time",
    "java.util", "java.util.concurrent", "sun.nio.ch",
)  # fmt: skip
JVM = (
    "-Xmx1500m",
    "-XX:+UseSerialGC",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
)


def build() -> None:
    """Fetch the jars and compile the programs."""
    goals = ["compile", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    folders = [f"-Dbuild.folder={TARGET}", f"-DoutputDirectory={TARGET}/jars"]
    subprocess.run(["mvn", "-q", "-B", "-C", "-f", str(HERE), *folders, *goals], check=True)


def sql(bridge: Bridge, mode: str, *statements: str) -> list[str]:
    """Run statements in one session, where `ice` is the catalog.

    Args:
        bridge: the catalog.
        mode: BATCH or STREAMING.
        statements: of one line each.

    Returns:
        Lines: `row +I[…]` for each row, `error …` for each error and its causes.
    """
    with TemporaryDirectory() as folder:
        script = Path(folder, "script.sql")
        words = ", ".join(f"'{name}'='{value}'" for name, value in settings(bridge).items())
        catalog = f"CREATE CATALOG ice WITH ('type'='iceberg', 'catalog-type'='rest', {words})"
        script.write_text("\n".join((catalog, *statements)))
        lines = run("Sql", mode, str(script)).stdout.splitlines()
    return [line for line in lines if line.startswith(("row ", "error ")) and "[OK]" not in line]


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    process = started(program, *words, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def started(
    program: str,
    *words: str,
    stdin: int | None = None,
    stderr: int | None = None,
    logged: str = "off",
) -> subprocess.Popen[str]:
    """Start a program whose output can be read.

    Args:
        logged: the level from which its log has messages: `warn`.
    """
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={logged}"
    return subprocess.Popen(
        ["java", *JVM, level, "-cp", f"{TARGET}/classes:{TARGET}/jars/*", program, *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "AWS_REGION": REGION},
    )


def settings(bridge: Bridge) -> dict[str, str]:
    """The settings of a catalog."""
    return {
        "uri": bridge.catalog_uri,
        "warehouse": bridge.warehouse,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": bridge.s3_endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "client.region": REGION,
    }


if __name__ == "__main__":
    build()
