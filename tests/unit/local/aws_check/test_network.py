"""What routes, endpoints and rules of security groups let through; None: it cannot be said."""

import json
from ipaddress import ip_network

import pytest
from polynya_local.aws_check.network import Network, admits, every, is_restricted

WITHIN = [ip_network("10.0.1.0/24")]


def rule(low=5432, high=5432, protocol="tcp", **targets):
    ports = {} if protocol == "-1" else {"FromPort": low, "ToPort": high}
    return {"IpProtocol": protocol, **ports, **targets}


def ranges(*texts):
    return {"IpRanges": [{"CidrIp": text} for text in texts]}


PAIR = {"UserIdGroupPairs": [{"GroupId": "sg-1"}]}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([rule(**ranges("0.0.0.0/0"))], True),
        ([rule(protocol="-1", **ranges("0.0.0.0/0"))], True),
        ([rule(0, 65535, **ranges("10.0.0.0/8"))], True),
        ([rule(**ranges("10.0.0.0/25", "10.0.1.0/24"))], True),
        ([rule(**ranges("10.0.1.0/25"))], None),  # a part of the subnet
        ([rule(**ranges("10.0.2.0/24"))], False),
        ([rule(5433, 5433, **ranges("0.0.0.0/0"))], False),
        ([rule(protocol="udp", **ranges("0.0.0.0/0"))], False),
        ([rule(**PAIR)], True),
        ([rule(5433, 5433, **PAIR)], False),
        ([rule(UserIdGroupPairs=[{"GroupId": "sg-2"}])], False),
        ([rule(PrefixListIds=[{"PrefixListId": "pl-1"}])], None),
        (None, None),
    ],
)
def test_rules_admit_a_subnet_and_a_group(rules, expected):
    assert admits(rules, 5432, {"sg-1"}, WITHIN) is expected


def test_what_is_not_known_of_the_other_side():
    assert admits([rule(**PAIR)], 5432, None, WITHIN) is None
    assert admits([rule(**ranges("10.0.0.0/8"))], 5432, {"sg-1"}, []) is None
    assert admits([rule(**ranges("0.0.0.0/0"))], 5432, None, []) is True
    # An address of IPv6 says nothing of rules for IPv4.
    ipv6 = [ip_network("2001:db8::1")]
    assert admits([rule(**ranges("10.0.0.0/8"))], 5432, {"sg-1"}, ipv6) is None


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([True, True], True), ([True, None], None), ([None, False], False), ([], True)],
)
def test_every(answers, expected):
    assert every(answers) is expected


def network(routes=(), endpoints=(), own=(), groups=None, **more) -> Network:
    """Two subnets; the second one has a route table of its own."""
    main = {"RouteTableId": "rtb-1", "Associations": [{"Main": True}], "Routes": [*routes]}
    second = {
        "RouteTableId": "rtb-2",
        "Associations": [{"SubnetId": "subnet-2", "Main": False}],
        "Routes": [*own],
    }
    values = {"tables": [main, second], "endpoints": endpoints, "groups": groups or []}
    subnets = [
        {"SubnetId": f"subnet-{number}", "CidrBlock": f"10.0.{number}.0/24"} for number in (1, 2)
    ]
    return Network("eu-west-1", "vpc-1", subnets, frozenset({"sg-1"}), **(values | more))


def out(**target):
    return {"DestinationCidrBlock": "0.0.0.0/0", "State": "active", **target}


NAT, LOCAL = out(NatGatewayId="nat-1"), {"DestinationCidrBlock": "10.0.0.0/16", "State": "active"}


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([LOCAL], False),
        ([LOCAL, NAT], True),
        ([NAT | {"State": "blackhole"}], False),
        ([out(GatewayId="igw-1")], False),  # functions have no public address
        ([out(TransitGatewayId="tgw-1")], None),
        ([out(GatewayId="vgw-1")], None),
        ([{"DestinationIpv6CidrBlock": "::/0", "State": "active", "NatGatewayId": "nat-1"}], False),
    ],
)
def test_a_subnet_leads_out(routes, expected):
    assert network(routes).leads_out("subnet-1") is expected
    assert network(own=routes).leads_out("subnet-2") is expected
    assert network(routes, tables=None).leads_out("subnet-1") is None


def endpoint(service="s3", tables=("rtb-1", "rtb-2"), **more):
    return {
        "VpcEndpointId": f"vpce-{service}",
        "ServiceName": f"com.amazonaws.eu-west-1.{service}",
        "VpcEndpointType": "Gateway",
        "State": "available",
        "RouteTableIds": [*tables],
        **more,
    }


def interface(**more):
    values = {"VpcEndpointType": "Interface", "PrivateDnsEnabled": True, "RouteTableIds": []}
    return endpoint("sts", **(values | {"Groups": [{"GroupId": "sg-9"}]} | more))


ADMITS = [{"GroupId": "sg-9", "IpPermissions": [rule(443, 443, **PAIR)]}]
READ_ONLY = json.dumps(
    {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:Get*", "Resource": "*"}]}
)


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        ([], False),
        ([endpoint()], True),
        ([endpoint(tables=["rtb-1"])], False),
        ([endpoint(State="pending")], False),
        ([endpoint(ServiceName="com.amazonaws.eu-west-1.s3express")], False),
        ([endpoint(PolicyDocument=READ_ONLY)], None),
    ],
)
def test_a_gateway_endpoint_is_in_the_route_tables(endpoints, expected):
    assert network(endpoints=endpoints).reaches("s3") is expected


def test_an_endpoint_serves_one_subnet_and_nat_the_other():
    assert network(endpoints=[endpoint(tables=["rtb-1"])], own=[NAT]).reaches("s3") is True
    assert network(endpoints=[endpoint(tables=["rtb-1"])], own=[NAT]).endpoint_ids("s3") == set()
    assert network(endpoints=[endpoint()]).endpoint_ids("s3") == {"vpce-s3"}


@pytest.mark.parametrize(
    ("endpoints", "groups", "expected"),
    [
        ([interface()], ADMITS, True),
        ([interface()], [{"GroupId": "sg-9", "IpPermissions": []}], False),
        ([interface(PrivateDnsEnabled=False)], ADMITS, False),
        ([interface(PolicyDocument=READ_ONLY)], ADMITS, None),
    ],
)
def test_an_interface_endpoint_admits_the_functions(endpoints, groups, expected):
    assert network(endpoints=endpoints, groups=groups).reaches("sts") is expected


def test_what_was_not_seen_is_not_known():
    assert network(endpoints=None).reaches("s3") is None
    assert network([NAT], own=[NAT], endpoints=None).reaches("s3") is True
    unseen = Network("eu-west-1", "vpc-1", network().subnets, frozenset(), [], [interface()], None)
    assert unseen.reaches("sts") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, False),
        (READ_ONLY, True),
        (
            '{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", '
            '"Resource": "*"}]}',
            False,
        ),
        ("nonsense", True),
        ('{"Statement": []}', True),
    ],
)
def test_the_policy_of_an_endpoint(text, expected):
    assert is_restricted({"PolicyDocument": text}) is expected
