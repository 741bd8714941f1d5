"""The command `polynya`, which says which extra to install where a package is missing."""

import sys

EXTRAS = {"demo": "demo", "ingest": "pipeline", "publish": "pipeline", "verify": "pipeline"}
"""The extra that brings what a subcommand needs; the others need none."""


def main() -> None:
    """Run the command."""
    try:
        from .cli import app

        app(prog_name="polynya")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        # A package of Polynya is missing: no extra brings it.
        if package.startswith("polynya"):
            raise
        sys.exit(missing(package, sys.argv[1:]))


def missing(package: str, words: list[str]) -> str:
    """What to do about a package that a command lacks.

    Args:
        words: the command line, without the name of the program.
    """
    extra = EXTRAS.get(words[0]) if words else None
    polynya = f"'polynya[{extra}]'" if extra else "polynya"
    return f"polynya: no package {package!r} here: pip install {polynya}"


if __name__ == "__main__":
    main()
