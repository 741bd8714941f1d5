"""`polynya aws check`: what a deployment needs, before `sam deploy`; and its file of parameters."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from polynya.runtime.printable import printable, printable_json
from polynya_pipeline.common.options import AsJson, Delivery
from polynya_pipeline.common.progress import console, waiting

from . import parameters
from .answers import Aws
from .judgement import Deployment, Line, Status
from .survey import Survey

COLOURS = {"missing": "bold red", "unknown": "yellow", "note": "dim", "ok": ""}
NOT_SEEN = (
    "Not looked at: whether these credentials may deploy (roles, functions, an API), network ACLs, "
    "policies of the organization, and what is in the secret and in the database."
)

aws = typer.Typer(
    name="aws", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


@aws.callback()
def options() -> None:
    """Prepare a deployment on AWS."""


@aws.command("check")
def check(
    bucket: Annotated[
        str, typer.Option(metavar="NAME", help="The bucket of the lake's files (DataBucket).")
    ],
    database_host: Annotated[
        str, typer.Option(metavar="HOST", help="The host of PostgreSQL, or of RDS Proxy.")
    ],
    database_name: Annotated[
        str, typer.Option(metavar="NAME", help="The database that holds the DuckLake catalog.")
    ],
    database_port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65535, help="Where PostgreSQL answers.")
    ] = 5432,
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="The name or ARN of the secret with the role that reads. It is described, never "
            "read. Default: IAM authentication of RDS.",
        ),
    ] = None,
    database_user: Annotated[
        str, typer.Option(metavar="ROLE", help="Without --secret, the role in PostgreSQL.")
    ] = "polynya",
    subnets: Annotated[
        str,
        typer.Option(
            metavar="IDS",
            show_default=False,
            help="Up to four subnets for the functions, comma-separated. Default: outside a VPC, "
            "where the database needs a public address.",
        ),
    ] = "",
    security_groups: Annotated[
        str,
        typer.Option(
            metavar="IDS",
            show_default=False,
            help="With --subnets, the functions' security groups, comma-separated.",
        ),
    ] = "",
    delivery: Annotated[
        Delivery,
        typer.Option(
            help="materialize works in every account; object-lambda only where S3 Object Lambda "
            "was used before 2025-11-07.",
        ),
    ] = Delivery.MATERIALIZE,
    region: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="Default: that of the environment or profile."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Write the parameters into a file for `sam deploy --config-file`, such as "
            "deploy.toml, which git ignores.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --write, replace a file with other content.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what this account, network and machine can deploy, and write the parameters.

    Each line is ok, missing (the deployment would fail, or not work), unknown (it could not be
    seen, with the reason) or a note. All calls to AWS read, with the credentials of the environment
    or of AWS_PROFILE; docs/deploying.md has a policy with the rights that they need. A line whose
    right is missing is unknown.

    The exit code is 1 if anything is missing, or if the file cannot be written.
    """
    try:
        account = Aws(region)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    deployment = Deployment(
        account.region,
        delivery,
        bucket,
        database_host,
        database_port,
        database_name,
        secret,
        database_user,
        tuple(filter(None, subnets.split(","))),
        tuple(filter(None, security_groups.split(","))),
    )
    if bool(deployment.subnets) != bool(deployment.groups):
        raise typer.BadParameter("--subnets and --security-groups require each other")
    values = _values(deployment)
    if problems := parameters.problems(values):
        raise typer.BadParameter("; ".join(problems))
    survey = Survey(account, deployment)
    with waiting("Asking AWS"):
        lines = list(survey.lines())
    values |= survey.sign_in
    missing = sum(line.status is Status.MISSING for line in lines)
    if as_json:
        document = {"well": not missing, "lines": [line._asdict() for line in lines]}
        print(printable_json(document | {"parameters": values, "not_seen": NOT_SEEN}, indent=2))
    else:
        _show(lines)
    if write is not None:
        missing += not _write(write, account.region, values, replace=replace)
    raise typer.Exit(1 if missing else 0)


def _values(deployment: Deployment) -> dict[str, str]:
    """The given parameters, except those by which the functions sign in."""
    values = {
        "Delivery": deployment.delivery.value,
        "DatabaseHost": deployment.host,
        "DatabaseName": deployment.name,
        "DataBucket": deployment.bucket,
    }
    if deployment.port != 5432:
        values["DatabasePort"] = str(deployment.port)
    if deployment.subnets:
        values["SubnetIds"] = ",".join(deployment.subnets)
        values["SecurityGroupIds"] = ",".join(deployment.groups)
    return values


def _show(lines: list[Line]) -> None:
    out = console(sys.stdout)
    for line in lines:
        words = printable(f"{line.status:8} {line.about}: {line.words}")
        out.print(words, style=COLOURS[line.status], soft_wrap=True)
    counts = {status: sum(line.status is status for line in lines) for status in Status}
    out.print(NOT_SEEN, soft_wrap=True)
    out.print(f"{counts[Status.MISSING]} missing, {counts[Status.UNKNOWN]} unknown", style="bold")


def _write(path: Path, region: str, values: dict[str, str], *, replace: bool) -> bool:
    """Write the parameters, and say on stderr what was done."""
    out = console(sys.stderr)
    try:
        outcome = parameters.write(path, region, values, replace=replace)
    except ValueError as error:
        out.print(f"polynya: {error}", soft_wrap=True)
        return False
    out.print(
        f"{path} {outcome}: `make build`, then `.venv-sam/bin/sam deploy --config-file "
        f"{path.resolve()}`",
        soft_wrap=True,
    )
    return True
