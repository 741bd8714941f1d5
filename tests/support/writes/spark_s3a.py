"""Statements of a Spark that reads S3 by itself (S3A), in a process of its own.

Hadoop's file system has to be on the class path before Spark starts, and a process has one Spark.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from polynya_local.clients import spark_jars

SECONDS = 900

S3A = {
    "org.apache.hadoop:hadoop-aws:3.4.2": (
        "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9"
    ),
    "software.amazon.awssdk:s3-transfer-manager:2.29.52": (
        "0c9e654637247187a7e2494eb7a8799477a772a7d554cd3ae787cd3e3bae3c55"
    ),
}
"""The hash of each jar. With these, and the SDK in Iceberg's bundle, Spark itself reads S3: its
`add_files` lists it."""


def run(uri: str, s3_endpoint: str, data_endpoint: str, *statements: str) -> list[Any]:
    """The rows of each statement, as lists, or the text of its error.

    `{c}` is the catalog. A statement that begins with `PYTHON` is one of Python, with `spark`.

    Args:
        s3_endpoint: for the catalog; `data_endpoint`: for Spark's own files.
    """
    given = json.dumps([uri, s3_endpoint, data_endpoint, statements])
    command = [sys.executable, "-m", "tests.support.writes.spark_s3a"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def s3a_jars() -> list[Path]:
    """The jars of S3A, fetched if they are missing."""
    for artifact, digest in S3A.items():
        path = spark_jars.CACHE / spark_jars.file_name(artifact)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_there = spark_jars.is_genuine(path, digest) or spark_jars.fetch_with_maven(
            artifact, digest
        )
        assert is_there, f"Maven does not give {artifact}"
    return [spark_jars.CACHE / spark_jars.file_name(artifact) for artifact in S3A]


def main() -> None:
    from polynya_local.clients import spark

    uri, s3_endpoint, data_endpoint, statements = json.loads(sys.stdin.read())
    jars = [*(spark_jars.jars() or []), *s3a_jars()]
    spark.jars = lambda: jars
    session = spark.session()
    hadoop = session._jsc.hadoopConfiguration()
    for name, value in {
        "endpoint": data_endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": "any",
        "secret.key": "any",
        "connection.ssl.enabled": "false",
        "change.detection.mode": "none",
        "impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }.items():
        hadoop.set(f"fs.s3a.{name}", value)
    # The tasks of `add_files` write manifests with Hadoop's file system, whatever `io-impl` is.
    hadoop.set("fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    catalog = spark.Spark(uri, "lake", s3_endpoint).catalog
    answers: list[Any] = []
    for statement in statements:
        try:
            if statement.startswith("PYTHON "):
                exec(statement.removeprefix("PYTHON "), {"spark": session})
                answers.append([])
            else:
                rows = session.sql(statement.format(c=catalog)).collect()
                answers.append([list(row) for row in rows])
        except Exception as error:
            lines = str(error).splitlines()
            answers.append("\n".join(s for s in lines if not s.startswith("\tat "))[:2000])
    print("\n" + json.dumps(answers, default=str))


if __name__ == "__main__":
    main()
