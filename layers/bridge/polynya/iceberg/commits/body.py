"""The base of the request bodies: pydantic checks them, names are kebab-case in JSON."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ...errors import BadRequest

Parsed = TypeVar("Parsed")


class Body(BaseModel):
    """A JSON object. Keys that the specification may add later are ignored."""

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"),
        frozen=True,
        strict=True,
        extra="ignore",
    )


def parse(kind: type[Parsed], body: bytes) -> Parsed:
    """The body of a request.

    Raises:
        BadRequest: it does not have the form of the specification; the message says where.
    """
    try:
        found: Parsed = TypeAdapter(kind).validate_json(body)
    except ValidationError as error:
        # Without the value, which can be anything.
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise BadRequest(f"{where}: {first['msg']}") from None
    return found
