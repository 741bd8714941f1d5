"""Schemathesis generates requests from the OpenAPI document: valid ones and invalid ones."""

from copy import deepcopy

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import strategies as st
from polynya.runtime.errors import READ_ONLY
from polynya_local.processes.serving import serving
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.openapi import DOCUMENT, ENVELOPE, OPERATIONS, PATHS, validator

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(deepcopy(DOCUMENT))  # it changes its argument
EXAMPLES = [10, pytest.param(25, marks=pytest.mark.slow)]
# Existing names, because generated ones would never get past the first 404.
EXISTING = {
    "prefix": ["lake", "lake--at-3"],
    "namespace": ["main"],
    "table": ["d", "e"],
    "view": [],
}
NAMES = st.fixed_dictionaries(
    {name: st.sampled_from([*known, None]) for name, known in EXISTING.items()}
)
PLANS = [(method, path) for method, path in OPERATIONS if path.endswith(("/plan", "/tasks"))]
ADVERTISED = "config namespaces namespaces/{namespace} tables tables/{table} views views/{view}"
SERVED = [
    (method, path)
    for method, path in OPERATIONS
    if (method, path) in PLANS
    or (method in ("GET", "HEAD") and path.endswith(tuple(f"/{end}" for end in ADVERTISED.split())))
]
WRITES = [
    (method, path)
    for method, path in OPERATIONS
    if method not in ("GET", "HEAD") and (method, path) not in PLANS
]


@pytest.fixture(scope="module")
def uri(lake, moto):
    with serving(lake("13").database.url, moto) as bridge:
        yield bridge.catalog_uri


@pytest.fixture(scope="module")
def session():
    with requests.Session() as session:
        yield session


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("method, path", SERVED)
def test_a_read_gets_a_documented_answer(uri, session, method, path, mode, examples):
    operation = SCHEMA[path][method]

    @hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), names=NAMES)
    def ask(case, names):
        for name, value in names.items():
            if value is not None and name in (case.path_parameters or {}):
                case.path_parameters[name] = value
        response = case.call(base_url=uri, session=session)
        case.validate_response(response, checks=CHECKS)
        if response.status_code >= 400 and method != "HEAD":
            validator(ENVELOPE).validate(response.json())
            assert response.json()["error"]["code"] == response.status_code

    ask()


BAD_REQUEST = "BadRequestException"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\x00", b"{}"])
@pytest.mark.parametrize("method, path", WRITES)
def test_a_write_is_refused(uri, session, method, path, body):
    """Each gets 403, because Spark removes uploaded files only then. A report is no write."""
    names = {name: (known or ["v"])[0] for name, known in EXISTING.items()} | {"plan-id": "p"}
    headers = {"Content-Type": "application/json"}
    url = uri + path.format(**names)
    response = session.request(method, url, data=body, headers=headers, timeout=60)
    if path.endswith("/metrics"):
        assert (response.status_code, response.json()["error"]["type"]) == (400, BAD_REQUEST)
        return
    error = {"message": READ_ONLY, "type": "ForbiddenException", "code": 403}
    assert (response.status_code, response.json()) == (403, {"error": error})


@pytest.mark.parametrize("path", [path for m, path in OPERATIONS if m == "GET"])
def test_a_read_that_is_not_served_causes_no_server_error(uri, session, path):
    if ("GET", path) in SERVED:
        return
    names = {name: (known or ["v"])[0] for name, known in EXISTING.items()}
    url = uri + path.format(**names, **{"plan-id": "p", "function": "f"})
    response = session.get(url, timeout=60)
    assert response.status_code in {404, 406}
    validator(ENVELOPE).validate(response.json())


def test_what_is_served_is_what_is_advertised(uri, session):
    endpoints = session.get(f"{uri}/v1/config", timeout=60).json()["endpoints"]
    served = {f"{method} {path}" for method, path in SERVED if path != "/v1/config"}
    metrics = {f"POST {path}" for path in PATHS if path.endswith("/metrics")}
    assert set(endpoints) == served | metrics and len(endpoints) == len(set(endpoints))
