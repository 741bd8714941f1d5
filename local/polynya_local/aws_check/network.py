"""A VPC as AWS describes it: what its subnets lead to, and what its security groups let through.

The answer `None` means that it is not known. Nothing here calls AWS.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

IPNetwork = IPv4Network | IPv6Network
ANYWHERE = ip_network("0.0.0.0/0")
Described = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Network:
    """The subnets of functions, with the route tables, endpoints and security groups of their VPC.

    None: these were not seen.
    """

    region: str
    vpc: str
    subnets: Sequence[Described]
    group_ids: frozenset[str]
    """The security groups of the functions."""
    tables: Sequence[Described] | None
    endpoints: Sequence[Described] | None
    groups: Sequence[Described] | None
    """All security groups of the VPC."""

    def table(self, subnet: str) -> Described | None:
        """The route table of a subnet: its own, or the main one of the VPC."""
        main = None
        for table in self.tables or ():
            for association in table.get("Associations", []):
                if association.get("SubnetId") == subnet:
                    return table
                if association.get("Main"):
                    main = table
        return main

    def endpoint(self, service: str, subnet: str) -> Described | None:
        """The endpoint that leads from a subnet to a service of AWS."""
        table = self.table(subnet)
        for endpoint in self.endpoints or ():
            if not endpoint["ServiceName"].endswith(f".amazonaws.{self.region}.{service}"):
                continue
            if endpoint.get("State", "").lower() != "available":
                continue
            if endpoint.get("VpcEndpointType") == "Interface":
                if endpoint.get("PrivateDnsEnabled"):
                    return endpoint
            elif table and table["RouteTableId"] in endpoint.get("RouteTableIds", []):
                return endpoint
        return None

    def reaches(self, service: str) -> bool | None:
        """Whether functions in every subnet reach a service of AWS."""
        return every(self._reaches(service, subnet["SubnetId"]) for subnet in self.subnets)

    def _reaches(self, service: str, subnet: str) -> bool | None:
        endpoint = self.endpoint(service, subnet)
        if endpoint is None:
            out = self.leads_out(subnet)
            return None if self.endpoints is None and not out else out
        if endpoint.get("VpcEndpointType") != "Interface":
            return None if is_restricted(endpoint) else True
        groups = {group["GroupId"] for group in endpoint.get("Groups", [])}
        rules = permissions(self.groups, groups, "IpPermissions")
        through = admits(rules, 443, self.group_ids, self.ranges)
        return None if through and is_restricted(endpoint) else through

    def leads_out(self, subnet: str) -> bool | None:
        """Whether functions in a subnet reach the internet; they have no public addresses."""
        if self.tables is None:
            return None
        table = self.table(subnet)
        for route in table.get("Routes", []) if table else ():
            if route.get("DestinationCidrBlock") == str(ANYWHERE) and route["State"] == "active":
                if route.get("NatGatewayId"):
                    return True
                # A transit gateway, an instance or a firewall may lead out, or not.
                return False if route.get("GatewayId", "").startswith("igw-") else None
        return False

    def endpoint_ids(self, service: str) -> frozenset[str]:
        """The endpoints by which all subnets reach a service; empty: some have none."""
        used = [self.endpoint(service, subnet["SubnetId"]) for subnet in self.subnets]
        ids = frozenset(endpoint["VpcEndpointId"] for endpoint in used if endpoint)
        return ids if None not in used else frozenset()

    @property
    def ranges(self) -> list[IPNetwork]:
        """The addresses of the subnets."""
        return [ip_network(subnet["CidrBlock"]) for subnet in self.subnets]

    @property
    def egress(self) -> list[Described] | None:
        """The rules for connections from the functions; None: they were not seen."""
        return permissions(self.groups, self.group_ids, "IpPermissionsEgress")


def permissions(
    groups: Iterable[Described] | None, ids: Collection[str], key: str
) -> list[Described] | None:
    """The rules of some security groups, all of which apply; None: they were not seen."""
    if groups is None:
        return None
    return [rule for group in groups if group["GroupId"] in ids for rule in group.get(key, [])]


def every(answers: Iterable[bool | None]) -> bool | None:
    """Whether all answers are yes."""
    values = list(answers)
    if False in values:
        return False
    return None if None in values else True


def admits(
    rules: Sequence[Described] | None,
    port: int,
    groups: Collection[str] | None,
    networks: Sequence[IPNetwork],
) -> bool | None:
    """Whether rules of security groups let TCP through to a port.

    Args:
        groups: the security groups of the other side; None: they are not known.
        networks: all addresses that the other side may have; empty: they are not known.
    """
    if rules is None:
        return None
    rules = [rule for rule in rules if _has_port(rule, port)]
    pairs = {pair["GroupId"] for rule in rules for pair in rule.get("UserIdGroupPairs", [])}
    ranges = [ip_network(part["CidrIp"]) for rule in rules for part in rule.get("IpRanges", [])]
    if ANYWHERE in ranges or pairs.intersection(groups or ()):
        return True
    ipv4 = [network for network in networks if isinstance(network, IPv4Network)]
    inside = [any(network.subnet_of(part) for part in ranges) for network in ipv4]  # type: ignore[arg-type]
    if ipv4 and all(inside):
        return True
    touched = any(network.overlaps(part) for network in ipv4 for part in ranges)
    unclear = bool(ranges and not ipv4) or bool(pairs and groups is None)
    lists = any(rule.get("PrefixListIds") for rule in rules)
    return None if touched or unclear or lists else False


def _has_port(rule: Described, port: int) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    return rule["IpProtocol"] in {"tcp", "6"} and rule["FromPort"] <= port <= rule["ToPort"]


def is_restricted(endpoint: Described) -> bool:
    """Whether an endpoint has a policy of its own, instead of the one that permits everything."""
    text = endpoint.get("PolicyDocument")
    if not text:
        return False
    try:
        [statement] = json.loads(text)["Statement"]
    except (KeyError, TypeError, ValueError):
        return True
    everyone = statement.get("Principal") in ("*", {"AWS": "*"})
    everything = statement.get("Action") == "*" and statement.get("Resource") == "*"
    allows = statement.get("Effect") == "Allow" and "Condition" not in statement
    return not (allows and everyone and everything)
