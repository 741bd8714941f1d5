"""template.yaml as CloudFormation deploys it: the layers and the permissions of each function."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from polynya_local import ROOT

from .confinement import Confinement, Role, importable

NO_VALUE = {"Ref": "AWS::NoValue"}
CONNECTIVES: dict[str, Callable[[Iterable[bool]], bool]] = {
    "Fn::Not": lambda operands: not any(operands),
    "Fn::And": all,
    "Fn::Or": any,
}


class TemplateLoader(yaml.CSafeLoader):
    """Reads CloudFormation's short forms (`!Ref x`) as the long ones (`{"Ref": "x"}`)."""


def _long_form(loader: TemplateLoader, tag: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    return {tag if tag in {"Ref", "Condition"} else f"Fn::{tag}": value}


TemplateLoader.add_multi_constructor("!", _long_form)


@cache
def template() -> dict[str, Any]:
    """The whole document."""
    loaded: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(), Loader=TemplateLoader)
    return loaded


@dataclass(frozen=True)
class Stack:
    """The deployment with these values of parameters, and of attributes of resources.

    A parameter without a value has its default. Anything else without a value appears as its name
    in `${}`.
    """

    values: Mapping[str, str]

    def statements(self, resource: str) -> list[dict[str, Any]]:
        """The statements of the policies of a function, or of a role, resolved."""
        policies = self.properties(resource)["Policies"]
        return [
            statement for policy in policies for statement in self._document(policy)["Statement"]
        ]

    def requirements(self, function: str) -> list[Path]:
        """The requirements.txt of a function's layers, and its own."""
        properties = self.properties(function)
        layers = [layer.strip("${}") for layer in properties["Layers"]]
        folders = [self.properties(layer)["ContentUri"] for layer in layers]
        return [ROOT / folder / "requirements.txt" for folder in (*folders, properties["CodeUri"])]

    def resolved(self, node: Any) -> Any:
        """The node with every `If`, `Ref`, `Sub` and `GetAtt` replaced by its value."""
        if isinstance(node, list):
            return [self.resolved(item) for item in node if self._is_there(item)]
        if not isinstance(node, dict):
            return node
        for name, resolve in FUNCTIONS.items():
            if name in node:
                return resolve(self, node[name])
        return {key: self.resolved(value) for key, value in node.items() if self._is_there(value)}

    def properties(self, resource: str) -> dict[str, Any]:
        """The properties of a resource, resolved."""
        properties: dict[str, Any] = self.resolved(
            template()["Resources"][resource].get("Properties", {})
        )
        return properties

    def broken_rules(self) -> list[str]:
        """The messages of CloudFormation's rules that these values break."""
        return [
            assertion["AssertDescription"]
            for rule in template()["Rules"].values()
            # A rule without a condition always holds.
            if self._is_true(rule.get("RuleCondition", {"Fn::Equals": ["", ""]}))
            for assertion in rule["Assertions"]
            if not self._is_true(assertion["Assert"])
        ]

    def _document(self, policy: Any) -> Any:
        """A policy document, given as itself or as a reference to a resource of the template."""
        if isinstance(policy, str):
            return self.properties(policy.strip("${}"))["PolicyDocument"]
        return policy.get("PolicyDocument", policy)

    def _is_there(self, node: Any) -> bool:
        while isinstance(node, dict) and "Fn::If" in node:
            condition, yes, no = node["Fn::If"]
            node = yes if self._holds(condition) else no
        return bool(node != NO_VALUE)

    def _holds(self, condition: str) -> bool:
        return self._is_true(template()["Conditions"][condition])

    def _is_true(self, expression: dict[str, Any]) -> bool:
        [(function, operands)] = expression.items()
        if function == "Condition":
            return self._holds(operands)
        if function == "Fn::Equals":
            left, right = map(self.resolved, operands)
            return str(left) == str(right)
        return CONNECTIVES[function](map(self._is_true, operands))

    def _if(self, node: list[Any]) -> Any:
        condition, yes, no = node
        return self.resolved(yes if self._holds(condition) else no)

    def _ref(self, name: str) -> Any:
        default = template()["Parameters"].get(name, {}).get("Default", f"${{{name}}}")
        return self.values.get(name, default)

    def _sub(self, node: Any) -> str:
        text, variables = (node, {}) if isinstance(node, str) else (node[0], self.resolved(node[1]))

        def value(match: re.Match[str]) -> str:
            name = match[1]
            return str(variables[name] if name in variables else self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", value, text)

    def _getatt(self, node: Any) -> Any:
        return self._ref(node if isinstance(node, str) else ".".join(node))

    def _select(self, node: list[Any]) -> Any:
        return self.resolved(node[1])[int(node[0])]

    def _split(self, node: list[Any]) -> list[str]:
        return str(self.resolved(node[1])).split(node[0])


FUNCTIONS: dict[str, Callable[[Stack, Any], Any]] = {
    "Fn::If": Stack._if,
    "Ref": Stack._ref,
    "Fn::Sub": Stack._sub,
    "Fn::GetAtt": Stack._getatt,
    "Fn::Select": Stack._select,
    "Fn::Split": Stack._split,
}


LOGICAL_IDS = {
    "rest-catalog": "RestCatalogFunction",
    "object-lambda": "ObjectLambdaFunction",
    "commits": "CommitsFunction",
}
"""The functions in the template, by their names here."""


def as_deployed(
    settings: Mapping[str, str],
    *,
    data_bucket: str,
    data_prefix: str = "",
    lake_buckets: Sequence[str] = (),
) -> dict[str, Confinement]:
    """The packages and permissions of each function, by its name.

    Args:
        settings: environment variables of the functions.
        data_bucket: the parameter DataBucket; under `materialize` it also has the virtual files.
        data_prefix: the parameter DataPrefix.
        lake_buckets: the buckets of further lakes, for the parameter LakeFiles.
    """
    values = {
        "AWS::Partition": "aws",
        "Delivery": settings["DELIVERY"],
        "DataBucket": data_bucket,
        "DataPrefix": data_prefix,
        "CacheBucket.Arn": f"arn:aws:s3:::{settings.get('CACHE_BUCKET', '')}",
        "PolicyObject": _policy_object(settings.get("AUTHORIZATION", "")),
        "Writes": settings.get("WRITES", "no"),
        "CopyDataFiles": settings.get("COPY_DATA_FILES", "no"),
        "LakeFiles": ",".join(f"arn:aws:s3:::{bucket}/*" for bucket in lake_buckets),
    }
    if settings.get("LAKES"):
        values["Lakes"] = "yes"
    if prefix := settings.get("VIRTUAL_PREFIX"):
        values["VirtualPrefix"] = prefix
    if staging := settings.get("STAGING_LOCATION"):  # by default it is below the data's prefix
        values["StagingBucket.Arn"] = f"arn:aws:s3:::{staging.removeprefix('s3://')}"
    stack = Stack(values)
    return {
        name: Confinement(
            name, importable(stack.requirements(resource)), Role(stack.statements(resource))
        )
        for name, resource in LOGICAL_IDS.items()
    }


def _policy_object(authorization: str) -> str:
    return authorization.removeprefix("s3://") if authorization.startswith("s3://") else ""
