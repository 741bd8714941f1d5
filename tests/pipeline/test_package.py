"""The package for EMR Serverless is complete: jobs run from it with nothing else but PySpark.

`make package` makes the real one, and tests.checks.packaged checks it.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path

import boto3
import pytest
from polynya_local.processes.serving import environment as settings

from local.build import package
from tests.checks.packaged import machines, only_pyspark, submit
from tests.contract.test_layers import packages

pytestmark = pytest.mark.spark

# FastAPI and pydantic are packages of the functions behind API Gateway alone.
IMPORT_ALL = """
import importlib, pkgutil, polynya, polynya_pipeline
OF_FUNCTIONS = ("polynya.commits", "polynya.iceberg.commits", "polynya.translate.commits",
                "polynya.aws_lambda.api_handler",
                *(f"polynya.http.{name}" for name in "application calls reading writing".split()))
for root in (polynya_pipeline, polynya):
    for module in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
        if not module.name.endswith("__main__") and not module.name.startswith(OF_FUNCTIONS):
            importlib.import_module(module.name)
print(polynya_pipeline.__file__)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """The folder as `make package` lays it out, with links to the packages installed here."""
    folder = tmp_path_factory.mktemp("package") / "environment"
    site = package.lay_out(folder, sys.executable)
    for name in packages(package.requirements()):
        found = distribution(name)
        tops = {file.parts[0] for file in found.files if len(file.parts) > 1 or file.suffix}
        for top in tops - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(found.locate_file(top)))
    return folder


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("job") / "job.py"
    path.write_text(package.JOB)
    return path


def test_every_module_can_be_imported(environment, tmp_path):
    with only_pyspark() as pyspark:
        done = subprocess.run(
            [environment / "bin/python", "-c", IMPORT_ALL],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(pyspark)},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith(str(environment))


@pytest.mark.slow  # it starts a JVM; `make package` does the same with the real package
def test_spark_submit_runs_verify_from_the_package(environment, job, open_lake, moto, tmp_path):
    """The job runs as in the template's schedule: settings are variables, the password is a secret.

    The only fault is a missing file. spark-submit returns the job's exit code, which tells EMR
    Serverless that a run has failed.
    """
    lake = open_lake(DATA_INLINING_ROW_LIMIT=0)
    for _ in ("one file", "another"):
        lake.sql("CREATE TABLE IF NOT EXISTS t(i BIGINT)")
        lake.sql("INSERT INTO t FROM range(1000)")
    [[file]] = lake.catalog("SELECT path FROM ducklake_data_file ORDER BY data_file_id LIMIT 1")
    key = f"{lake.data_path.removeprefix('s3://lakes/')}/main/t/{file}"
    boto3.client("s3", endpoint_url=moto).delete_object(Bucket="lakes", Key=key)
    secret = {"username": lake.database.user, "password": "open sesame"}
    made = boto3.client("secretsmanager", endpoint_url=moto).create_secret(
        Name=f"{lake.database.dbname} packaged", SecretString=json.dumps(secret)
    )
    variables = settings({"AWS_ENDPOINT_URL": moto}) | {
        "DATABASE_URL": replace(lake.database, user="nobody", password="").url,
        "DATABASE_CREDENTIALS": f"secret:{made['ARN']}",
    }
    report = tmp_path / "report.json"
    words = ("verify", "--master", "cluster", "--footers", "--report", str(report))
    done = submit(environment, job, *words, **variables)
    assert done.returncode == 1, done.stderr + done.stdout
    assert "sesame" not in done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert [one["check"] for one in found["findings"]] == ["missing-file"]
    assert found["checked"]["files with statistics"] == 2 and found["checked"]["footers"] == 1


def test_the_archive_can_be_unpacked_anywhere(tmp_path):
    folder = tmp_path / "environment"
    package.lay_out(folder, sys.executable)
    package.pack(folder, tmp_path / "one.tar.gz")
    (folder / package.SITE / "polynya/__pycache__").mkdir()
    (folder / package.SITE / "polynya/__init__.py").touch()
    package.pack(folder, tmp_path / "two.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    shutil.rmtree(folder)
    elsewhere = tmp_path / "else where"
    with tarfile.open(tmp_path / "one.tar.gz") as tar:
        tar.extractall(elsewhere, filter="tar")
    prefix = subprocess.check_output(
        [elsewhere / "bin/python", "-c", "import sys; print(sys.prefix)"], text=True
    )
    assert prefix.strip() == str(elsewhere)
    with zipfile.ZipFile(BytesIO(package.our_zip())) as ours:
        names = set(ours.namelist())
    certificates = {
        str(path.relative_to(elsewhere / package.SITE)) for path in elsewhere.rglob("*.pem")
    }
    assert (
        certificates
        and certificates | {"polynya_pipeline/commands.py", "polynya/py.typed"} <= names
    )


def test_a_library_for_another_machine_is_detected(tmp_path):
    head = bytearray(20)
    head[:4], head[18] = b"\x7fELF", 183
    (tmp_path / "x.so").write_bytes(head)
    assert machines(tmp_path) == {"aarch64"}
