"""The command `polynya`, which says which extra to install where a package is missing."""

import sys

EXTRAS = {
    "duckdb_extension_avro": "demo",
    "duckdb_extension_iceberg": "demo",
    "moto": "demo",
    "pytz": "demo",
    "requests": "demo",
    "pandas": "pipeline",
    "pyspark": "pipeline,spark",
}
"""The extra that brings a package; `local` brings all others."""


def main() -> None:
    """Run the command."""
    try:
        from .cli import app

        app(prog_name="polynya")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package.startswith("polynya"):
            raise
        extra = EXTRAS.get(package, "local")
        sys.exit(f"polynya: no package {package!r} here: pip install 'polynya[{extra}]'")


if __name__ == "__main__":
    main()
