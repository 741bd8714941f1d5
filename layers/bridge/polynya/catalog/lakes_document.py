"""The document LAKES: the settings of each of several lakes, by its name.

One lake is that of the settings. A deployment with the setting LAKES has more, which a document
describes, by name:

    {"sales":    {"metadata_schema": "sales", "data_path": "s3://data/sales/"},
     "research": {"database_url": "postgresql://polynya@other:5432/research?sslrootcert=rds",
                  "database_credentials": "secret:research-reader",
                  "commits": {"database_credentials": "secret:research-writer"},
                  "data_path": "s3://research/", "hidden_types": "time", "writes": "yes"}}

An entry has settings of the lake under their names in lower case (`OF_A_LAKE`), and `data_path`:
where all files of the lake are. `commits` has the settings that differ in the function that writes.
All others are those of the deployment. The lake of the settings may have an entry with its
`data_path` alone.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..runtime.errors import Misconfigured, PolynyaError
from ..runtime.settings import Config
from ..storage.operator_documents import json_of
from ..storage.s3_locations import bucket_and_key
from ..virtual_files.names import UUID
from .warehouse import Warehouse

OF_A_LAKE = frozenset(
    (
        *("database_url", "database_credentials", "metadata_schema", "delivery"),
        *("virtual_bucket", "snapshot_limit", "build_seconds", "chunk_files", "hidden_types"),
        *("format_version_3", "inexact_columns", "column_defaults", "scan_planning", "writes"),
        *("staging_location", "clients", "copy_data_files", "custom_properties", "view_dialects"),
    )
)
"""The settings that an entry of the document may have."""

OF_COMMITS = frozenset(("database_url", "database_credentials"))
"""The settings that may differ in the function that writes."""

Environment = Mapping[str, str]
Configs = Mapping[str, Config | PolynyaError]
"""The settings of each lake by its name, or what is wrong with them."""

DATA_PATH = re.compile(r"s3://[^/\s]+(/(?!\.{1,2}(/|$))[^/\0-\x1f]+)*/?")
"""It has no part that a client may take for a path to another directory."""


def lakes_of(document: str, environ: Environment, *, commits: bool = False) -> Configs:
    """The lakes of the document LAKES.

    Args:
        environ: the settings of the deployment.
        commits: for the function that writes.

    Raises:
        Misconfigured: the document is wrong as a whole.
    """
    entries = json_of(document, _wrong)
    if not isinstance(entries, dict):
        raise _wrong("it must be an object: the name of a lake to its settings")
    configs: dict[str, Config | PolynyaError] = {}
    for name, entry in entries.items():
        try:
            configs[name] = _config(name, entry, environ, commits=commits)
        except PolynyaError as error:
            # The other lakes are served.
            configs[name] = error
    _check_data_paths(configs)
    return configs


def _config(name: str, entry: Any, environ: Environment, *, commits: bool) -> Config:
    # A table's uuid follows the prefix in the keys of the lake of the settings.
    if not name or Warehouse.parse_prefix(name) != Warehouse(name) or re.fullmatch(UUID, name):
        raise _wrong(f"{name!r} cannot be the name of a lake")
    own = dict(entry) if isinstance(entry, dict) else {}
    data_path = own.pop("data_path", None)
    if not isinstance(data_path, str) or not DATA_PATH.fullmatch(data_path):
        raise _wrong(f"{name}: data_path must be s3://bucket/prefix/")
    data_path = f"{data_path.rstrip('/')}/"
    if environ.get("DATABASE_URL") and name == (environ.get("WAREHOUSE") or "lake"):
        if own:
            raise _wrong(f"{name}: the entry of the lake of the settings may have data_path only")
        return replace(Config.from_env(environ), data_path=data_path)
    of_commits = own.pop("commits", {})
    if not isinstance(of_commits, dict) or not of_commits.keys() <= OF_COMMITS:
        raise _wrong(f"{name}: `commits` may have {' and '.join(sorted(OF_COMMITS))}")
    if unknown := own.keys() - OF_A_LAKE:
        raise _wrong(f"{name}: {min(unknown)!r} is not a setting of a lake")
    own |= of_commits if commits else {}
    if not all(isinstance(value, str) for value in own.values()):
        raise _wrong(f"{name}: each setting must be a text")
    texts = {setting.upper(): value for setting, value in own.items()}
    settings = _inherited(name, texts, environ)
    if texts.get("DELIVERY") == "materialize" and "VIRTUAL_BUCKET" not in settings:
        settings["VIRTUAL_BUCKET"] = (bucket_and_key(data_path) or ("",))[0]
    config = Config.from_env(settings | texts | {"WAREHOUSE": name})
    return replace(config, lake=name, data_path=data_path)


def _inherited(name: str, texts: Environment, environ: Environment) -> dict[str, str]:
    """The settings of the deployment, as they are for a lake of the document."""
    settings = {key: value for key, value in environ.items() if key != "LAKES"}
    if "DATABASE_URL" in texts:  # those of the deployment are for its own database
        settings.pop("DATABASE_CREDENTIALS", None)
    settings |= settings_of_lake(name, {}, environ)
    delivery = settings.get("DELIVERY") or "object-lambda"
    if texts.get("DELIVERY", delivery) != delivery:
        settings.pop("VIRTUAL_BUCKET", None)  # it is for the other delivery
    return settings


def settings_of_lake(name: str, own: Mapping[str, Any], environ: Environment) -> dict[str, str]:
    """The settings of one of several lakes: prefixes with its name, and its own settings.

    Args:
        own: its entry in the document, or a part of it.
        environ: the settings of the deployment.
    """
    settings = {"VIRTUAL_PREFIX": f"{virtual_prefix(environ)}/{name}"}
    if staging := environ.get("STAGING_LOCATION"):
        settings["STAGING_LOCATION"] = f"{staging.rstrip('/')}/{name}"
    return settings | {key.upper(): text for key, text in own.items() if key != "commits"}


def virtual_prefix(environ: Environment) -> str:
    """The key prefix of the virtual files of all lakes, without slashes around it."""
    return (environ.get("VIRTUAL_PREFIX") or "polynya").strip("/")


def _check_data_paths(configs: dict[str, Config | PolynyaError]) -> None:
    """Replace the settings of lakes whose data path is within another one's, or around it."""
    paths = sorted((c.data_path, name) for name, c in configs.items() if isinstance(c, Config))
    # In this order those within a path follow it.
    around = ("", "")
    for path, name in paths:
        if around[0] and path.startswith(around[0]):
            for wrong in (name, around[1]):
                configs[wrong] = _wrong(f"{wrong}: its data path is within that of another lake")
        else:
            around = path, name


def _wrong(reason: str) -> Misconfigured:
    return Misconfigured(f"the document of the lakes (LAKES) is wrong: {reason}")
