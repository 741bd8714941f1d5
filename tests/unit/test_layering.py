"""Allowed imports (docs/architecture.md), checked by parsing the import statements with `ast`.

An import inside a function counts like any other unless a row says that it is lazy.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers/bridge/polynya"
MODULES = sorted(PACKAGE.rglob("*.py"))
FUNCTIONS = sorted(ROOT.glob("functions/*/*.py"))


class Import(NamedTuple):
    by: str
    """The importing module, as a path below the package or the repository."""
    of: str
    """The imported object, dotted and absolute, down to the name: polynya.ducklake.rows.Column."""
    lazy: bool
    """Whether it is inside a function, or for type checkers only."""


def imports(path: Path) -> list[Import]:
    inside = path.is_relative_to(PACKAGE)
    by = path.relative_to(PACKAGE if inside else ROOT)
    package = ("polynya", *by.parts[:-1]) if inside else by.parts[:-1]
    found = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(str(by), alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            found.extend(Import(str(by), f"{base}.{alias.name}", lazy) for alias in node.names)
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        for child in ast.iter_child_nodes(node):
            visit(child, lazy or is_later)

    visit(ast.parse(path.read_text()), lazy=False)
    return found


IMPORTS = [found for path in MODULES for found in imports(path)]
FUNCTION_IMPORTS = [found for path in FUNCTIONS for found in imports(path)]


def within(dotted: str, *packages: str) -> bool:
    return any(f"{dotted}.".startswith(f"{package}.") for package in packages)


def of_folder(folder: str) -> list[Import]:
    found = [one for one in IMPORTS if one.by.startswith(folder)]
    assert found, f"{folder} imports nothing: was it moved?"
    return found


def test_the_parser_of_imports_finds_relative_nested_and_lazy_ones(tmp_path):
    translate = ROOT / "layers/bridge/polynya/translate/tables.py"
    found = {(one.of, one.lazy) for one in imports(translate)}
    assert ("polynya.ducklake.history.states", False) in found
    assert ("polynya.errors.Refused", False) in found
    assert ("polynya.ducklake.text_values.EPOCH", False) in found
    assert ("duckdb", True) in {
        (one.of, one.lazy) for one in imports(PACKAGE / "iceberg/parquet/sandbox.py")
    }


# The names under which folders of the repository are imported.
PACKAGES = {
    "layers/bridge/polynya": "polynya",
    "functions": "polynya_functions",
    "local": "polynya_local",
    "pipeline": "polynya_pipeline",
    "bench": "bench",
}


def modules() -> Iterator[tuple[str, Path]]:
    """The dotted name and the file of each module; of a package, that of its `__init__`."""
    for folder, package in PACKAGES.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), path


def imported(name: str, known: Collection[str]) -> str | None:
    """The module that an import names, or whose object it names; None if it is not ours."""
    folder = next((f for f in PACKAGES if within(name, f.replace("/", "."))), None)
    if folder is not None:  # a relative import
        name = PACKAGES[folder] + name.removeprefix(folder.replace("/", "."))
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name if name in known else None


def test_imports_form_no_circle():
    """Those inside functions count too: somebody who reads one module must find an end."""
    known = dict(modules())
    needs = {
        name: {imported(one.of, known) for one in imports(path)} - {None, name}
        for name, path in known.items()
    }
    assert "polynya.ducklake.queries" in needs["polynya.catalog"]
    assert "polynya_local.pages.site" in needs["polynya_local.pages.lazy"]
    assert "polynya.storage.s3" in needs["polynya_local.lakes.data_path"]
    TopologicalSorter(needs).prepare()


# The parts of Polynya that each folder or module may import, besides itself.
OURS = [
    ("ducklake/", {"errors", "config", "budget", "namespaces"}),
    (
        "ducklake/writes/",
        {
            *("ducklake.column_tree", "ducklake.connection", "ducklake.queries"),
            *("ducklake.rows", "ducklake.text_order", "errors"),
        },
    ),
    ("ducklake/column_tree.py", set()),
    ("ducklake/text_order.py", {"ducklake.column_tree", "ducklake.text_values"}),
    ("ducklake/text_values.py", set()),
    ("iceberg/", {"errors", "budget"}),
    ("ducklake/rows/conditions.py", {"ducklake.rows.data_files"}),
    (
        "planning/",
        {
            *("catalog", "files", "translate", "iceberg", "errors", "namespaces"),
            *("ducklake.connection.database", "ducklake.faults", "ducklake.rows"),
        },
    ),
    (
        "translate/",
        {
            *("ducklake.rows", "ducklake.history", "ducklake.changes", "ducklake.text_values"),
            *("ducklake.column_tree", "ducklake.text_order"),
            *("ducklake.writes.files", "ducklake.writes.text_bounds"),
            *("iceberg", "errors"),
        },
    ),
    (
        "commits/",
        {
            *("catalog", "access", "files", "storage", "translate", "ducklake", "iceberg"),
            *("errors", "budget", "config", "parallel", "namespaces"),
        },
    ),
    ("web/rest_app.py", {"budget", "errors", "web.events", "metrics", "tracing"}),
    ("web/open_catalog.py", {"catalog", "config", "database", "files", "storage"}),
    ("web/requests.py", set()),
    ("parallel.py", set()),
    ("storage/", {"errors", "metrics", "budget", "config", "parallel"}),
    (
        "files/",
        {
            *("storage", "translate", "ducklake", "iceberg"),
            *("errors", "budget", "config", "parallel", "read_ahead"),
        },
    ),
    ("read_ahead.py", set()),
    (
        "access/",
        {
            "files",
            "storage",
            "ducklake",
            "iceberg.rest",
            "translate.write_locations",
            "errors",
            "web.events",
            "metrics",
            "config",
            "namespaces",
        },
    ),
    ("access/policy.py", {"errors", "namespaces"}),
    ("access/writable.py", {"access.policy", "errors", "namespaces"}),
    ("access/session_policy.py", {"access.table_scope"}),
    ("access/principals.py", {"web.events"}),
    ("storage/stores.py", {"storage.listing"}),
    ("storage/listing.py", set()),
    ("storage/circuit_breaker.py", set()),
    ("parallel.py", set()),
    ("storage/memory_cache.py", set()),
    ("storage/s3.py", set()),
    ("web/http_headers.py", {"errors"}),
    ("web/events.py", set()),
    ("settings.py", set()),
    ("pagination.py", {"errors"}),
    ("namespaces.py", {"errors"}),
    ("warehouse.py", set()),
    ("metrics.py", set()),
    ("budget.py", {"errors"}),
    ("tracing.py", set()),
    ("config.py", {"errors", "settings"}),
    ("errors.py", set()),
]


@pytest.mark.parametrize(("folder", "allowed"), OURS, ids=[folder for folder, _ in OURS])
def test_a_part_imports_only_the_parts_below_it(folder, allowed):
    itself = "polynya." + folder.removesuffix(".py").rstrip("/").replace("/", ".")
    ours = {one for one in IMPORTS if one.by.startswith(folder) and within(one.of, "polynya")}
    below = {f"polynya.{name}" for name in allowed}
    assert {one for one in ours if not within(one.of, itself, *below)} == set()
    assert (PACKAGE / folder).exists()


def test_translate_does_not_read_history():
    """It imports records and pure functions of `history`, never `read` (needs a connection)."""
    taken = {
        one.of for one in of_folder("translate/") if within(one.of, "polynya.ducklake.history")
    }
    names = {"State", "TableHistory", "Totals", "states", "state_at", "unservable_reason"}
    assert taken <= {f"polynya.ducklake.history.{name}" for name in names}


# They depend on numpy, and no other module may load them at its import.
COLUMNAR = {
    "files/content/data_manifests.py",
    *(f"iceberg/avro/{name}.py" for name in ("columns", "row_encoder", "columnar")),
    *(
        f"translate/metrics/{name}.py"
        for name in ("bounds", "data_files", "file_metrics", "text_columns")
    ),
}

# A dependency and the modules that may import it; True: only lazily.
THIRD_PARTY = [
    ("pg8000", {"ducklake/": False}),
    ("fastavro", {"iceberg/": False}),
    ("deflate", {"iceberg/avro/compression.py": False}),
    ("duckdb", {"iceberg/": True}),
    ("pyroaring", {"iceberg/": True}),
    ("mmh3", {"iceberg/": True}),
    (
        "numpy",
        dict.fromkeys(COLUMNAR, False)
        | dict.fromkeys(("iceberg/positions.py", "iceberg/parquet/lake_deletes.py"), True),
    ),
    ("boto3", {"storage/aws.py": True}),
    (
        "botocore",
        dict.fromkeys(
            (
                "storage/aws.py",
                "storage/objects/ranges.py",
                "storage/objects/translated_errors.py",
            ),
            True,
        ),
    ),
    (
        "aws_lambda_powertools",
        {
            "storage/file_cache.py": False,
            "storage/cache_store.py": False,
            "storage/delivery_bucket.py": False,
            "access/vended_credentials.py": False,
            "metrics.py": False,
            "web/rest_app.py": False,
            "tracing.py": True,
        },
    ),
    *((name, {"web/rest_app.py": False}) for name in ("fastapi", "mangum", "starlette")),
    ("pydantic", {"iceberg/commits/": False, "iceberg/planning/": False}),
    *((name, {}) for name in ("urllib3", "requests")),
    *((name, {}) for name in ("pyarrow", "pyiceberg", "pandas", "uvicorn", "moto")),
    *((f"polynya_{name}", {}) for name in ("local", "functions", "pipeline")),
    ("tests", {}),
]


def test_modules_that_depend_on_numpy_are_loaded_only_when_needed():
    names = ["polynya." + path.removesuffix(".py").replace("/", ".") for path in COLUMNAR]
    loaded = {one for one in IMPORTS if within(one.of, *names) and not one.lazy}
    assert {one.by for one in loaded} <= COLUMNAR


# They pass a connection on and name its type; only `ducklake/` queries the database.
ANNOTATED = {
    "access/own_scopes.py",
    "access/readable_lake.py",
    "access/vended_credentials.py",
    "catalog.py",
    "commits/catalog.py",
    "commits/targets.py",
    "commits/writing/new_paths.py",
    "files/content/added_files.py",
    "files/content/data_manifests.py",
    "files/content/deletes.py",
    "files/content/inlined_rows.py",
    "files/content/manifests.py",
    "files/content/live_rows.py",
    "files/scans/padded.py",
    "files/scans/scan_files.py",
    "files/table_files.py",
    "files/unservable.py",
    "files/virtual_files.py",
}


@pytest.mark.parametrize(("name", "where"), THIRD_PARTY, ids=[name for name, _ in THIRD_PARTY])
def test_a_dependency_is_imported_only_where_it_belongs(name, where):
    for one in IMPORTS:
        if not within(one.of, name) or (
            one.by in ANNOTATED and one.of == "pg8000.native.Connection"
        ):
            continue
        lazily = [lazy for place, lazy in where.items() if one.by.startswith(place)]
        assert lazily, f"{one.by} imports {one.of}"
        assert one.lazy or not lazily[0], f"{one.by} imports {one.of} when it is loaded"


@pytest.mark.parametrize("module", sorted(ANNOTATED))
def test_a_connection_is_only_an_annotation_above_ducklake(module):
    tree = ast.parse((PACKAGE / module).read_text())
    annotations = {
        id(name)
        for node in ast.walk(tree)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(annotation, ast.AST)
        for name in ast.walk(annotation)
    }
    used = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "Connection" and id(node) not in annotations
    ]
    assert used == []


def test_every_dependency_has_a_rule_here():
    known = {name for name, _ in THIRD_PARTY} | {"polynya"} | sys.stdlib_module_names
    assert {one.of.split(".")[0] for one in IMPORTS} - known == set()


def test_a_function_imports_neither_other_functions_nor_local():
    assert FUNCTION_IMPORTS
    foreign = [
        one
        for one in FUNCTION_IMPORTS
        if within(one.of, "polynya_functions", "polynya_local", "tests")
    ]
    assert foreign == []
    # In Lambda the module is called `app`, so a relative import has no parent package.
    assert not any(
        isinstance(node, ast.ImportFrom) and node.level
        for path in FUNCTIONS
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_functions_have_no_rows_no_sql_and_no_avro():
    hidden = ("polynya.iceberg", "polynya.translate", "polynya.ducklake")
    seen = {one.of for one in FUNCTION_IMPORTS if within(one.of, *hidden)}
    # The bodies of requests, which are read where the request is.
    bodies = ("polynya.iceberg.commits", "polynya.iceberg.planning")
    assert {one for one in seen if not within(one, *bodies)} == set()


SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE(?! /)|FROM|WHERE|JOIN|COPY|CAST|CREATE|UNION|BEGIN)\b"
)
SQL_HERE = {
    "ducklake/connection/statements.py",
    "ducklake/connection/catalog_connection.py",
    "ducklake/connection/database.py",
    "ducklake/queries/files/file_columns.py",
    "ducklake/queries/lifetimes.py",
    *(
        f"ducklake/queries/{name}.py"
        for name in (
            *("catalog", "commits", "deletes", "fragments", "inlined_tables"),
            *("named_objects", "table_columns", "table_snapshots"),
            *("files/bound_texts", "files/data_files", "files/planned_files"),
            *("listing/changed_rows", "listing/changes", "listing/entries"),
            "listing/uncertain_rows",
            *("listing/data_files", "listing/file_batches", "listing/overlaps"),
            *("writers/known_paths", "writers/live_files", "writers/table_stats"),
            *("writers/view_texts", "writers/writer_rights"),
        )
    ),
    *(
        f"ducklake/writes/{name}.py"
        for name in (
            *("commits", "commits_table", "copy", "delete_files", "deletes", "files", "inlined"),
            *(
                "new_snapshot",
                "snapshots",
                "stats",
                "objects/columns",
                "objects/schemas",
                "objects/table_names",
            ),
            *("objects/tables", "objects/tags", "objects/views"),
        )
    ),
    "ducklake/queries/table_locations.py",
    "iceberg/parquet/delete_files.py",
    "iceberg/parquet/files.py",
    "iceberg/parquet/lake_deletes.py",
    "iceberg/parquet/metadata.py",
    "iceberg/parquet/sandbox.py",
    "iceberg/view_text.py",
    "translate/inlined/rows.py",
}


def texts(path: Path) -> list[str]:
    """All string literals of a module except its docstrings, also of those below a statement."""
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_sql_is_written_only_where_it_is_executed(path):
    found = [text for text in texts(path) if SQL.search(text)]
    assert bool(found) == (str(path.relative_to(PACKAGE)) in SQL_HERE), found


PIPELINE = sorted(ROOT.glob("pipeline/**/*.py"))
PIPELINE_IMPORTS = [found for path in PIPELINE for found in imports(path)]

# The parts of the pipeline that each of its folders or modules may import, besides itself.
PIPELINE_ARROWS = [
    ("commands.py", {"ingest.command", "publish.command", "verify.command"}),
    ("ingest/", {"common"}),
    ("publish/", {"common"}),
    ("verify/", {"common"}),
    ("common/", set()),
]


def pipeline_imports(folder: str) -> list[Import]:
    """The imports of pipeline modules in a folder or module, without `polynya_pipeline`."""
    by = f"pipeline/{folder}"
    found = [
        one._replace(of=one.of.removeprefix("polynya_").removeprefix("pipeline."))
        for one in PIPELINE_IMPORTS
        if one.by.startswith(by) and within(one.of, "pipeline", "polynya_pipeline")
    ]
    assert found or not (ROOT / by).is_dir(), f"{by} imports nothing: was it moved?"
    return found


@pytest.mark.parametrize(
    ("folder", "allowed"), PIPELINE_ARROWS, ids=[folder for folder, _ in PIPELINE_ARROWS]
)
def test_jobs_import_only_shared_modules(folder, allowed):
    itself = folder.removesuffix(".py").rstrip("/")
    foreign = {one for one in pipeline_imports(folder) if not within(one.of, itself, *allowed)}
    assert foreign == set()


def test_every_module_of_the_pipeline_is_shared_or_belongs_to_a_job():
    folders = {path.relative_to(ROOT / "pipeline").parts[0] for path in PIPELINE}
    arrows = {folder.rstrip("/") for folder, _ in PIPELINE_ARROWS}
    assert folders == arrows | {"__init__.py", "__main__.py"}


def test_the_pipeline_imports_neither_the_functions_nor_local():
    foreign = ("polynya_functions", "polynya_local", "tests")
    assert [one for one in PIPELINE_IMPORTS if within(one.of, *foreign)] == []


# The parts of `polynya` that the jobs may import. `publish` may import everything, because it
# generates the functions' own files. The other jobs read and write the catalog themselves.
POLYNYA_IN_JOBS = {
    "namespaces",
    "database",
    "errors",
    "ducklake.changes",
    "ducklake.column_tree",
    "ducklake.connection",
    "ducklake.paths",
    "ducklake.queries",
    "ducklake.rows",
    "ducklake.text_order",
    "ducklake.writes",
    "parallel.AT_A_TIME",
    "storage.s3",
    "translate.tables.check_lake",
}


@pytest.mark.parametrize("folder", ["common/", "ingest/", "verify/"])
def test_a_job_imports_only_the_catalog_of_polynya(folder):
    by = f"pipeline/{folder}"
    taken = {
        one.of for one in PIPELINE_IMPORTS if one.by.startswith(by) and within(one.of, "polynya")
    }
    allowed = [f"polynya.{name}" for name in POLYNYA_IN_JOBS]
    assert taken and {of for of in taken if not within(of, *allowed)} == set()


def test_the_help_of_a_job_loads_no_slow_module():
    slow = {"boto3", "duckdb", "numpy", "pg8000", "polynya", "pyarrow", "pyspark", "rich"}
    script = f"import sys, polynya_pipeline.commands; print(*{slow!r} & sys.modules.keys())"
    loaded = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []


WRITES = re.compile(r"^\s*(INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|GRANT|COPY) ", re.M)


DUCKLAKE = sorted(PACKAGE.glob("ducklake/**/*.py"))


@pytest.mark.parametrize("path", [*DUCKLAKE, *PIPELINE], ids=lambda path: path.stem)
def test_only_ducklake_writes_has_sql_that_changes_the_catalog(path):
    found = [text for text in texts(path) if WRITES.search(text)]
    is_writer = path.is_relative_to(PACKAGE / "ducklake/writes")
    # `commits` writes by `copy` alone.
    is_pure = path.stem in {"__init__", "widening", "text_bounds", "commits"}
    assert bool(found) == (is_writer and not is_pure), found


WRITERS = (
    *("ducklake/writes/", "pipeline/ingest/", "commits/"),
    *("local/writes.py", "local/lakes/uncommitted.py"),
)
RECORDS = ("polynya.ducklake.writes.files", "polynya.ducklake.writes.text_bounds")


def test_only_ingest_and_commits_import_what_changes_the_catalog():
    everything = [*IMPORTS, *FUNCTION_IMPORTS, *PIPELINE_IMPORTS]
    writers = {
        one.by
        for one in everything
        if within(one.of, "polynya.ducklake.writes") and not within(one.of, *RECORDS)
    }
    assert writers
    assert {by for by in writers if not by.startswith(WRITERS)} == set()


COLD_STARTS = [
    (
        "polynya_functions.rest_catalog.app",
        {"duckdb", "numpy", "pyarrow", "pyroaring", "boto3", "aws_xray_sdk"},
    ),
    (
        "polynya_functions.commits.app",
        {"duckdb", "numpy", "pyarrow", "pyroaring", "boto3", "aws_xray_sdk"},
    ),
    (
        "polynya_functions.object_lambda.app",
        {"duckdb", "numpy", "pyarrow", "pyroaring", "boto3", "fastapi", "aws_xray_sdk"},
    ),
]


@pytest.mark.parametrize(("app", "absent"), COLD_STARTS, ids=[app for app, _ in COLD_STARTS])
def test_a_cold_start_imports_only_necessary_modules(app, absent):
    script = f"import sys, {app}; print(*{absent!r} & sys.modules.keys())"
    loaded = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.split() == []
