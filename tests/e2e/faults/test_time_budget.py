"""Every request is answered within its time, by 503 or without the cache."""

import json
import time
from contextlib import contextmanager

import pytest
from polynya.aws_lambda import api_handler, object_handler
from polynya.mapping.manifests import LENGTH
from polynya.runtime import budget
from polynya.storage import aws

from tests.aws import stand_in as local_aws
from tests.support.servers.in_process import cache_settings, standing_in
from tests.support.servers.raw_http import send
from tests.support.servers.slow_servers import delaying, silent

LAKE = "09"  # it has stored deletes, so its manifests need real objects
SECONDS = 2
"""The budget of a request in this module."""

NOBODY = "00000000-0000-4000-8000-000000000000"

SLACK = 1.5
"""Seconds for the work besides waiting, on a busy machine."""


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Shortens the timeouts so that each request has the budget above."""
    monkeypatch.setattr(local_aws, "REST_TIMEOUT_S", SECONDS + api_handler.RESERVE_SECONDS)
    reserve = object_handler.RESERVE_SECONDS
    monkeypatch.setattr(local_aws, "OBJECT_LAMBDA_TIMEOUT_S", SECONDS + reserve)


@contextmanager
def within(seconds: float):
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def load(uri: str):
    return send(uri, "GET", "/v1/lake/namespaces/main/tables/d?snapshots=all")


def lists_of(answer) -> list[str]:
    snapshots = json.loads(answer.body)["metadata"]["snapshots"]
    return ["/" + snapshot["manifest-list"].removeprefix("s3://") for snapshot in snapshots]


def at_port(lake, port: int) -> dict[str, str]:
    """The settings for the database of a lake at another port."""
    return {"DATABASE_URL": lake.database.url.replace(f":{lake.database.port}/", f":{port}/")}


def is_unavailable(answer) -> bool:
    return answer.status == 503 and int(answer.headers["retry-after"]) > 0


def test_catalog_database_that_never_answers(lake, moto):
    one = lake(LAKE)
    with silent() as port, standing_in(one, moto, **at_port(one, port)) as stand_in:
        for _ in range(2):
            with within(SECONDS + SLACK):
                assert is_unavailable(load(stand_in.api_uri))
        with within(SECONDS + SLACK):
            key = f"/virtual/polynya/{NOBODY}/g3/list-1-{'0' * LENGTH}.avro"
            assert b"<Code>SlowDown</Code>" in send(stand_in.s3_uri, "GET", key).body


def test_catalog_database_whose_answers_are_each_in_time(lake, moto):
    """A cold loadTable waits about twelve times."""
    one = lake(LAKE)
    with (
        delaying(one.database.port, 0.4) as port,
        standing_in(one, moto, **at_port(one, port)) as stand_in,
        within(SECONDS + SLACK),
    ):
        assert is_unavailable(load(stand_in.api_uri))


def test_bucket_of_the_data_that_never_answers(lake, moto):
    one = lake(LAKE)
    with silent() as port:
        away = f"http://127.0.0.1:{port}"
        with standing_in(one, moto, AWS_ENDPOINT_URL_S3=away) as stand_in:
            answers = []
            for target in lists_of(load(stand_in.api_uri)):
                with within(SECONDS + SLACK):
                    answers.append(send(stand_in.s3_uri, "GET", target))
    # These are the answers for snapshots with stored deletes.
    late = [answer for answer in answers if answer.status != 200]
    assert late and all(answer.status == 503 for answer in late)
    assert all(b"<Code>SlowDown</Code>" in answer.body for answer in late)


def test_bucket_of_the_virtual_files_that_never_answers(lake, moto):
    one = lake(LAKE)
    with silent() as port:
        away = f"http://127.0.0.1:{port}"
        with (
            standing_in(one, moto, delivery="materialize", AWS_ENDPOINT_URL_S3=away) as stand_in,
            within(SECONDS + SLACK),
        ):
            assert is_unavailable(load(stand_in.api_uri))


def test_cache_that_never_answers_costs_time_once(lake, moto, monkeypatch):
    """The files are built and served without the cache."""
    monkeypatch.setitem(aws.LONGEST_READ_SECONDS, "dynamodb", 0.25)
    monkeypatch.setattr(budget, "SLOW_SECONDS", 0.25)
    one = lake(LAKE)
    with silent() as port, standing_in(one, moto) as stand_in:
        targets = lists_of(load(stand_in.api_uri))
        made = [send(stand_in.s3_uri, "GET", target).body for target in targets]
    with silent() as port:
        away = cache_settings(moto) | {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}"}
        with standing_in(one, moto, **away) as stand_in:
            load(stand_in.api_uri)
            durations = []
            for target, body in zip(targets, made, strict=True):
                began = time.monotonic()
                answer = send(stand_in.s3_uri, "GET", target)
                durations.append(time.monotonic() - began)
                assert (answer.status, answer.body) == (200, body)
    assert len(durations) > 2
    assert durations[0] >= 0.5  # two attempts
    assert max(durations) < SECONDS + SLACK
    assert sorted(durations)[len(durations) // 2] < 0.5
