"""Policies of buckets, as AWS documents them, and what they deny to functions."""

import json

import pytest
from polynya_local.aws_check.bucket_policy import Origin, denials

INSIDE = Origin("111122223333", "vpc-1", frozenset({"vpce-1"}))
OUTSIDE = Origin("111122223333", None, frozenset())


def policy(**changed):
    statement = {
        "Sid": "S",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::b", "arn:aws:s3:::b/*"],
    } | changed
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def condition(operator, key, value):
    return {"Condition": {operator: {key: value}}}


APPLIES, UNKNOWN, NOT = [("S", True)], [("S", None)], []


@pytest.mark.parametrize(
    ("changed", "inside", "outside"),
    [
        ({}, APPLIES, APPLIES),
        ({"Principal": {"AWS": ["*"]}}, APPLIES, APPLIES),
        ({"Effect": "Allow"}, NOT, NOT),
        ({"Action": "s3:DeleteObject"}, NOT, NOT),
        ({"Action": ["s3:Put*"]}, APPLIES, APPLIES),
        ({"Action": "S3:getobject"}, APPLIES, APPLIES),
        # The roles of the functions do not exist yet.
        ({"Principal": {"AWS": "arn:aws:iam::111122223333:role/other"}}, NOT, NOT),
        ({"Principal": {"Service": "x.amazonaws.com"}}, NOT, NOT),
        (condition("Bool", "aws:SecureTransport", "false"), NOT, NOT),
        (condition("BoolIfExists", "aws:SecureTransport", ["false"]), NOT, NOT),
        (condition("NumericLessThan", "s3:TlsVersion", "1.2"), NOT, NOT),
        (condition("NumericLessThan", "s3:TlsVersion", 1.3), UNKNOWN, UNKNOWN),
        (condition("StringNotEquals", "aws:SourceVpce", ["vpce-1", "vpce-2"]), NOT, APPLIES),
        (condition("StringNotEquals", "aws:sourceVpce", "vpce-2"), APPLIES, APPLIES),
        (condition("StringNotEqualsIfExists", "aws:SourceVpc", "vpc-1"), NOT, APPLIES),
        (condition("StringNotEquals", "aws:PrincipalAccount", "111122223333"), NOT, NOT),
        (condition("StringNotEquals", "aws:PrincipalAccount", "999999999999"), APPLIES, APPLIES),
        (condition("StringNotEquals", "aws:PrincipalOrgID", "o-1"), UNKNOWN, UNKNOWN),
        (
            condition("StringNotEquals", "s3:x-amz-server-side-encryption", "aws:kms"),
            UNKNOWN,
            UNKNOWN,
        ),
        (condition("NotIpAddress", "aws:SourceIp", "192.0.2.0/24"), UNKNOWN, UNKNOWN),
        # All conditions must hold: one that does not makes the others irrelevant.
        (
            {
                "Condition": {
                    "NotIpAddress": {"aws:SourceIp": "192.0.2.0/24"},
                    "StringNotEquals": {"aws:SourceVpce": "vpce-1"},
                }
            },
            NOT,
            UNKNOWN,
        ),
    ],
)
def test_what_a_statement_denies(changed, inside, outside):
    assert list(denials(policy(**changed), INSIDE)) == inside
    assert list(denials(policy(**changed), OUTSIDE)) == outside


@pytest.mark.parametrize("key", ["aws:SourceVpc", "aws:SourceVpce"])
def test_from_where_is_not_known(key):
    unseen = Origin("111122223333", None, None)
    policies = policy(**condition("StringNotEquals", key, "vpc-1"))
    assert list(denials(policies, unseen)) == UNKNOWN


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            {"Effect": "Deny", "NotPrincipal": {"AWS": "arn:x"}, "Action": "s3:*"},
            [("number 1", None)],
        ),
        ({"Effect": "Deny", "Principal": "*", "NotAction": "s3:Get*"}, [("number 1", True)]),
        ({"Effect": "Deny", "Principal": "*", "NotAction": "s3:*"}, []),
    ],
)
def test_statements_by_exception(statement, expected):
    assert list(denials(json.dumps({"Statement": statement}), INSIDE)) == expected


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"Statement": ["x"]}'])
def test_what_is_no_policy_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        list(denials(text, INSIDE))
