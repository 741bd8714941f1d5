"""Instances of the functions in this process, each made of an environment of its own."""

from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

NAMES = ("rest_catalog", "object_lambda", "commits")


class Functions:
    """An instance of each function; as on AWS, it keeps what it has opened until the next one."""

    def __init__(self) -> None:
        """Start instances, with the environment as it is now."""
        self._modules = {name: new_instance(f"functions.{name}.app") for name in NAMES}

    def close(self) -> None:
        """Close and forget what the instances have opened, as new ones with the same settings."""
        for module in self._modules.values():
            module.lakes.close()

    def rest_catalog(self, event: dict[str, Any], context: Any) -> Any:
        """Answer an event of the function that reads."""
        return self._modules["rest_catalog"].handler(event, context)

    def object_lambda(self, event: dict[str, Any], context: Any) -> Any:
        """Answer an event of the function of files."""
        return self._modules["object_lambda"].handler(event, context)

    def commits(self, event: dict[str, Any], context: Any) -> Any:
        """Answer an event of the function that writes."""
        return self._modules["commits"].handler(event, context)

    def lakes(self, name: str) -> Any:
        """The lakes of a function."""
        return self._modules[name].lakes()


def new_instance(name: str) -> ModuleType:
    """The module of a function as a new instance has it, beside those of other instances."""
    spec = find_spec(name)
    assert spec is not None and spec.loader is not None, name
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
