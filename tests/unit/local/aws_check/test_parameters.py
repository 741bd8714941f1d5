"""The file of parameters: what the template accepts, and what is never replaced."""

import tomllib

import pytest
from polynya_local.aws_check.parameters import LIMITS, problems, write

from tests.aws.template import template

ARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:lake/reader-AbCdEf"
VALUES = {
    "Delivery": "materialize",
    "DatabaseHost": "lake.example",
    "DatabaseName": "lake",
    "DataBucket": "my-lake",
    "DatabaseSecretArn": ARN,
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_are_those_of_the_template(name):
    parameter = template()["Parameters"][name]
    allowed = parameter.get("AllowedValues")
    pattern = "|".join(allowed) if allowed else parameter.get("AllowedPattern", "[0-9]+")
    assert LIMITS[name] == (pattern, parameter.get("MaxLength"))


def test_all_parameters_without_a_default_have_a_value():
    required = {name for name, one in template()["Parameters"].items() if "Default" not in one}
    assert required <= VALUES.keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DatabaseHost", 'a"b'),
        ("DatabaseHost", "a" * 129),
        ("DatabaseName", "a\nb"),
        ("DatabaseSecretArn", "lake/reader"),
        ("SubnetIds", "subnet-1,"),
        ("DataBucket", "My-Lake"),
    ],
)
def test_no_value_needs_an_escape(tmp_path, name, value):
    assert problems(VALUES) == []
    [reason] = problems(VALUES | {name: value})
    assert reason.startswith(f"{name} cannot be ")
    with pytest.raises(ValueError, match="was not written"):
        write(tmp_path / "f", "eu-west-1", VALUES | {name: value}, replace=True)
    assert not (tmp_path / "f").exists()


def test_a_file_with_other_content_is_left_as_it_is(tmp_path):
    file = tmp_path / "deploy.toml"
    assert write(file, "eu-west-1", VALUES, replace=False) == "written"
    text = file.read_bytes()
    assert write(file, "eu-west-1", VALUES, replace=False) == "has these parameters already"
    with pytest.raises(ValueError, match="was left as it is"):
        write(file, "eu-west-2", VALUES, replace=False)
    assert file.read_bytes() == text
    assert write(file, "eu-west-2", VALUES, replace=True) == "replaced"
    parameters = tomllib.loads(file.read_text())["default"]
    assert parameters["global"]["parameters"]["region"] == "eu-west-2"
    # Not even text.
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="was left as it is"):
        write(file, "eu-west-2", VALUES, replace=False)


def test_without_a_way_to_sign_in_nothing_is_written(tmp_path):
    values = {name: value for name, value in VALUES.items() if name != "DatabaseSecretArn"}
    with pytest.raises(ValueError, match="give the ARN as --secret"):
        write(tmp_path / "f", "eu-west-1", values, replace=False)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="cannot be written: No such file"):
        write(tmp_path / "none" / "f", "eu-west-1", VALUES, replace=False)
    with pytest.raises(ValueError, match="cannot be written: Is a directory"):
        write(tmp_path, "eu-west-1", VALUES, replace=False)
