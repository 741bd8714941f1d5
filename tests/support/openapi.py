"""The pinned OpenAPI document of Apache Iceberg, and a validator for it."""

from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

ENVELOPE = "#/components/schemas/IcebergErrorResponse"


def _document() -> dict[str, Any]:
    """The document with corrections where no answer can satisfy it."""
    path = Path(__file__).parents[1] / "contract" / "rest-catalog-open-api.yaml"
    document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    # `initial-default` of an int: no number satisfies `oneOf` integer, long, float and double.
    primitive = document["components"]["schemas"]["PrimitiveTypeValue"]
    document["components"]["schemas"]["PrimitiveTypeValue"] = {"anyOf": primitive["oneOf"]}
    # Some 404s, and 406, name the inner ErrorModel, but their examples show the envelope.
    every = [*document["components"]["responses"].values()]
    for operations in document["paths"].values():
        for operation in operations.values():
            every += operation["responses"].values() if "responses" in operation else ()
    for answer in every:
        content = answer.get("content", {}).get("application/json", {})
        if content.get("schema") == {"$ref": "#/components/schemas/ErrorModel"}:
            content["schema"] = {"$ref": ENVELOPE}
    return document


DOCUMENT = _document()
PATHS = DOCUMENT["paths"]
REGISTRY = Registry().with_resource("urn:iceberg", DRAFT202012.create_resource(DOCUMENT))
METHODS = ("get", "head", "post", "put", "patch", "delete")
OPERATIONS = [(m.upper(), path) for path in PATHS for m in METHODS if m in PATHS[path]]


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        parts = node["$ref"].removeprefix("#/").split("/")
        node = DOCUMENT
        for part in parts:
            node = node[part]
    return node


def validator(reference: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"urn:iceberg{reference}"}, registry=REGISTRY)
