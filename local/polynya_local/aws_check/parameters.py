"""The parameters of a deployment, in the form that `sam deploy --config-file` reads."""

import re
from pathlib import Path
from typing import NamedTuple

BUCKET = "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
SECRET = "(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@!-]+)?"


class Limit(NamedTuple):
    """What the template accepts as a value."""

    pattern: str
    length: int | None = None


LIMITS = {
    "Delivery": Limit("object-lambda|materialize"),
    "DatabaseHost": Limit("[A-Za-z0-9.-]+", 128),
    "DatabasePort": Limit("[0-9]+"),
    "DatabaseName": Limit("[A-Za-z0-9_-]+", 63),
    "DatabaseSecretArn": Limit(SECRET, 160),
    "DatabaseUser": Limit("[A-Za-z0-9_-]+", 63),
    "DatabaseResourceId": Limit("((db|cluster|prx)-[A-Za-z0-9]+)?"),
    "DataBucket": Limit(BUCKET),
    "SubnetIds": Limit("(subnet-[0-9a-f]+(,subnet-[0-9a-f]+)*)?", 110),
    "SecurityGroupIds": Limit("(sg-[0-9a-f]+(,sg-[0-9a-f]+)*)?", 62),
}
"""As template.yaml has them, which is not in a wheel. No value needs an escape in TOML."""

FORM = """\
# Written by `polynya aws check`. docs/settings.md lists all parameters.

version = 0.1

[default.global.parameters]
stack_name = "polynya"
region = "{region}"

[default.deploy.parameters]
resolve_s3 = true  # SAM makes a bucket for the packages
capabilities = "CAPABILITY_IAM"
confirm_changeset = true
parameter_overrides = [
{pairs}
]
"""


def problems(values: dict[str, str]) -> list[str]:
    """Why the template does not accept values."""
    return [
        f"{name} cannot be {value!r}: the template accepts {LIMITS[name].pattern}"
        + (f", and at most {LIMITS[name].length} characters" if LIMITS[name].length else "")
        for name, value in values.items()
        if not re.fullmatch(LIMITS[name].pattern, value)
        or len(value) > (LIMITS[name].length or len(value))
    ]


def write(path: Path, region: str, values: dict[str, str], *, replace: bool) -> str:
    """Write the file.

    Args:
        replace: whether a file with other content may be replaced.

    Returns:
        What was done, as a verb.

    Raises:
        ValueError: a value is not known or not accepted, or the file is left as it is.
    """
    if not {"DatabaseSecretArn", "DatabaseResourceId"} & values.keys():
        raise ValueError(
            f"{path} was not written, because the ARN of the secret, or the id of the database for "
            "IAM authentication, is not known: give the ARN as --secret"
        )
    if reasons := problems(values):
        raise ValueError(f"{path} was not written: {'; '.join(reasons)}")
    pairs = "\n".join(f'    "{name}={values[name]}",' for name in LIMITS if name in values)
    text = FORM.format(region=region, pairs=pairs)
    try:
        present = path.read_bytes() if path.exists() else None
        if present == text.encode():
            return "has these parameters already"
        if present is not None and not replace:
            raise ValueError(
                f"{path} has other content, and was left as it is: name another file, or give "
                "--replace"
            )
        path.write_text(text)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None
    return "written" if present is None else "replaced"
