"""The sentences with which requests are refused, from the source code; … is a value."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "layers/bridge/polynya"
PREFIXES = {"BadRequest": "", "IllegalArgument": "", "refused": "the file … is refused: "}
"""What begins the message, by what makes it."""
VALUE = "…"


def sentences(*patterns: str) -> set[str]:
    """The messages of all 400 answers that the modules with these paths give."""
    modules = [
        ast.parse(path.read_text())
        for pattern in patterns
        for path in sorted(PACKAGE.glob(pattern))
    ]
    constants = {
        target.id: node.value
        for module in modules
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {text for module in modules for text in _of_module(module, constants)}


def _of_module(module: ast.Module, constants: dict[str, ast.expr]) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in PREFIXES and node.args:
            message = node.args[-1]
            if isinstance(message, ast.Name):
                message = constants.get(message.id, message)
            text = _text(message)
            if text.strip(VALUE + ": ").removeprefix("the file … is refused"):
                yield PREFIXES[node.func.id] + text


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(values):
            text = "".join(map(_text, values))
            while VALUE * 2 in text:
                text = text.replace(VALUE * 2, VALUE)
            return text
    return VALUE
