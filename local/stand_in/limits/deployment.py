"""The packages and permissions that template.yaml gives each function."""

from collections.abc import Mapping

from polynya_local.build.template import Stack

from .confinement import Confinement
from .packages import importable
from .role import Role

FUNCTIONS = {
    "rest-catalog": "RestCatalogFunction",
    "object-lambda": "ObjectLambdaFunction",
    "commits": "CommitsFunction",
}
"""The names of the functions here and in the template."""


def as_deployed(
    settings: Mapping[str, str], *, data_bucket: str, data_prefix: str = ""
) -> dict[str, Confinement]:
    """The packages and permissions of each function, by its name.

    Args:
        settings: environment variables of the functions.
        data_bucket: the parameter DataBucket; under `materialize` it also has the virtual files.
        data_prefix: the parameter DataPrefix.
    """
    values = {
        "AWS::Partition": "aws",
        "Delivery": settings["DELIVERY"],
        "DataBucket": data_bucket,
        "DataPrefix": data_prefix,
        "CacheBucket.Arn": f"arn:aws:s3:::{settings.get('CACHE_BUCKET', '')}",
        "PolicyObject": _policy_object(settings.get("AUTHORIZATION", "")),
        "Writes": settings.get("WRITES", "no"),
    }
    if prefix := settings.get("VIRTUAL_PREFIX"):
        values["VirtualPrefix"] = prefix
    if staging := settings.get("STAGING_LOCATION"):  # by default it is below the data's prefix
        values["StagingBucket.Arn"] = f"arn:aws:s3:::{staging.removeprefix('s3://')}"
    stack = Stack(values)
    return {
        name: Confinement(
            name, importable(stack.requirements(resource)), Role(stack.statements(resource))
        )
        for name, resource in FUNCTIONS.items()
    }


def _policy_object(authorization: str) -> str:
    return authorization.removeprefix("s3://") if authorization.startswith("s3://") else ""
