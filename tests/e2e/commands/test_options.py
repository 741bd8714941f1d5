"""What the command says of options that hide nothing, and of lakes that lie elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from polynya_local.cli import SUBCOMMANDS, Subcommands, app
from polynya_local.lakes.opened import opened_lakes
from typer.testing import CliRunner

from tests.support import file_lakes

WITHOUT_COMMANDS = """
import sys
from polynya_local.cli import app
try:
    app(["--help"])
except SystemExit:
    print(*sys.modules)
"""


def test_the_help_imports_nothing_of_the_commands():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_COMMANDS], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "typer" in modules
    heavy = ("fastapi", "numpy", "duckdb", "botocore", "pg8000", "polynya", "polynya_pipeline")
    assert modules.isdisjoint(heavy)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_list_says_what_the_help_of_the_command_says(name):
    """Its first sentence, or what is said instead of one that is too long for the list."""
    group = Subcommands(name="polynya")
    command = group.get_command(None, name)
    assert command.name == name
    listed, first = SUBCOMMANDS[name].short_help, command.help.partition(".")[0] + "."
    assert len(listed) <= 64
    assert listed.split()[0] == first.split()[0]
    assert listed == first or len(first) > 64 or name in {"writes", "publish"}


def test_a_misspelt_command_is_suggested():
    done = CliRunner().invoke(app, ["wrties"])
    assert done.exit_code == 2 and "writes" in done.stderr


@pytest.mark.parametrize("name", ["nonsense", "bigint", "struct", "TIME"])
def test_a_type_that_ducklake_has_not_is_refused(name, tmp_path):
    words = ["serve", str(tmp_path / "none.ducklake"), "--hide-type", "time", "--hide-type", name]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert f"names {name}, which are no types of DuckLake" in said and "uint32" in said


def test_the_variable_is_read_where_there_is_no_option(tmp_path, monkeypatch):
    monkeypatch.setenv("HIDDEN_TYPES", "time,nonsense")
    words = ["serve", str(tmp_path / "none.ducklake")]
    assert "names nonsense, which" in " ".join(CliRunner().invoke(app, words).stderr.split())
    # The option comes first; then the lake is what is missing.
    done = CliRunner().invoke(app, [*words, "--hide-type", "time"])
    assert "nonsense" not in done.stderr and "none.ducklake" in done.stderr


def test_a_lake_with_a_wrong_setting_of_its_own_is_not_served(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    file = tmp_path / "lakes.toml"
    file.write_text(f'[sales]\ndatabase_url = "{lake.address}"\nhidden_types = "nonsense"\n')
    done = CliRunner().invoke(app, ["serve", "--lakes", str(file), "--port", "0"])
    assert done.exit_code == 1 and "names nonsense, which" in " ".join(done.stderr.split())


STS = ["--sts-role", "arn:aws:iam::111122223333:role/x", "--s3-endpoint", "http://s3"]


@pytest.mark.parametrize("is_of_environment", [False, True])
@pytest.mark.parametrize(
    ("options", "is_refused"),
    [
        (["--tokens", "tokens"], False),
        ([], True),
        (["--tokens", "tokens", "--delivery", "materialize"], True),
        ([*STS, "--tokens", "tokens", "--delivery", "materialize"], True),
    ],
)
def test_columns_are_hidden_only_where_files_are_made_for_each_caller(
    options, is_refused, is_of_environment, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("tokens").write_text("")
    tables = {"main": [{"t": {"hidden_columns": ["a"]}}]}
    Path("policy").write_text(json.dumps({"rules": [{"principals": ["*"], "tables": tables}]}))
    lake = file_lakes.empty("duckdb", tmp_path / "lake")
    if is_of_environment:
        monkeypatch.setenv("AUTHORIZATION", Path("policy").read_text())
    of_policy = [] if is_of_environment else ["--policy", "policy"]
    # What comes after the policy is wrong, so that nothing is served.
    words = ["serve", lake.address, *of_policy, *options, "--files-from", "nonsense"]
    done = CliRunner().invoke(app, words)
    said = " ".join(done.stderr.split())
    assert ("hides columns, which needs" in said) is is_refused, said
    assert done.exit_code == (1 if is_refused else 2)


@pytest.mark.parametrize("name", ["time", "decimal(10,2)", "geometry", "interval"])
def test_a_type_of_ducklake_is_accepted(name, tmp_path):
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "none"), "--hide-type", name])
    assert done.exit_code == 1 and "none" in done.stderr


def test_two_lakes_with_relative_data_paths_are_told_of_the_file_with_settings(
    tmp_path, monkeypatch, capfd
):
    """They want to be started in two folders, and --data-path is for one lake."""
    names = ("one", "two")
    for name in names:
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        file_lakes.execute(
            f"""ATTACH 'ducklake:{name}.ducklake' AS lake (DATA_PATH 'files of {name}/');
            CREATE TABLE lake.t AS FROM range(100) AS r(i);"""
        )
    monkeypatch.chdir(tmp_path / "one")
    lakes = {name: {"database_url": str(tmp_path / name / f"{name}.ducklake")} for name in names}
    with opened_lakes(lakes) as found:
        assert list(found) == ["one"]
    said = capfd.readouterr().err
    assert "--data-path" not in said and "data_path = " in said and "--lakes" in said
    lakes["two"]["data_path"] = str(tmp_path / "two/files of two")
    with opened_lakes(lakes) as found:
        assert list(found) == ["one", "two"]
