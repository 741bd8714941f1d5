"""Allowed imports (docs/developers/architecture.md), checked by parsing imports with `ast`.

An import inside a function counts like any other unless a row says that it is lazy.
"""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers/bridge/polynya"
MODULES = sorted(PACKAGE.rglob("*.py"))
FUNCTIONS = sorted(ROOT.glob("functions/*/*.py"))
LOCAL = sorted(ROOT.glob("local/polynya_local/**/*.py"))


BASES = (PACKAGE, ROOT / "local", ROOT / "pipeline", ROOT)
"""The folders that the paths of importing modules are relative to."""


class Import(NamedTuple):
    by: str
    """The importing module, as a path below the first of BASES that it is in."""
    of: str
    """The imported object, dotted and absolute, down to the name: polynya.ducklake.rows.Column."""
    lazy: bool
    """Whether it is inside a function, or for type checkers only."""


def imports(path: Path) -> list[Import]:
    by = path.relative_to(next(base for base in BASES if path.is_relative_to(base)))
    package = ("polynya", *by.parts[:-1]) if path.is_relative_to(PACKAGE) else by.parts[:-1]
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
            if not isinstance(child, ast.expr):  # which has no import
                visit(child, lazy or is_later)

    visit(ast.parse(path.read_text()), lazy=False)
    return found


IMPORTS = [found for path in MODULES for found in imports(path)]
FUNCTION_IMPORTS = [found for path in FUNCTIONS for found in imports(path)]
LOCAL_IMPORTS = [found for path in LOCAL for found in imports(path)]


def within(dotted: str, *packages: str) -> bool:
    return any(f"{dotted}.".startswith(f"{package}.") for package in packages)


def of_folder(folder: str) -> list[Import]:
    found = [one for one in IMPORTS if one.by.startswith(folder)]
    assert found, f"{folder} imports nothing: was it moved?"
    return found


def test_the_parser_of_imports_finds_relative_nested_and_lazy_ones(tmp_path):
    translate = ROOT / "layers/bridge/polynya/mapping/tables.py"
    found = {(one.of, one.lazy) for one in imports(translate)}
    assert ("polynya.ducklake.queries.history.states", False) in found
    assert ("polynya.runtime.errors.Refused", False) in found
    assert ("polynya.types.temporal.EPOCH", False) in found
    assert ("duckdb", True) in {
        (one.of, one.lazy) for one in imports(PACKAGE / "iceberg/sandbox.py")
    }


PACKAGES = ["layers/bridge/polynya", "functions", "local/polynya_local", "bench"]
PACKAGES += ["pipeline/polynya_pipeline"]


def modules() -> Iterator[tuple[str, Path]]:
    """The dotted name and the file of each module; of a package, that of its `__init__`."""
    for folder in PACKAGES:
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to((ROOT / folder).parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


def imported(name: str, known: Collection[str]) -> str | None:
    """The module that an import names, or whose object it names; None if it is not ours."""
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
    assert "polynya.ducklake.queries" in needs["polynya.catalog.reader"]
    assert "polynya_local.page.state" in needs["polynya_local.page.app"]
    assert "polynya.storage.s3_locations" in needs["polynya_local.lakes.lake_files"]
    TopologicalSorter(needs).prepare()


def test_rooms_form_no_circle():
    """A room is a folder; a module beside rooms, as polynya_local/serve.py, is one by itself."""
    known = dict(modules())
    rooms = {name: room(path) for name, path in known.items()}
    needs: dict[str, set[str]] = {}
    for name, path in known.items():
        of = {imported(one.of, known) for one in imports(path)} - {None}
        others = {rooms[module] for module in of if known[module].name != "__init__.py"}
        needs.setdefault(rooms[name], set()).update(others - {rooms[name]})
    assert "local/polynya_local/reports" in needs["local/polynya_local/page"]
    assert "layers/bridge/polynya/ducklake" in needs["layers/bridge/polynya/ducklake/queries"]
    TopologicalSorter(needs).prepare()


def room(path: Path) -> str:
    folder = path.parent.relative_to(ROOT)
    return str(path.relative_to(ROOT) if str(folder) in PACKAGES else folder)


@pytest.mark.parametrize("name", [name for name, _ in modules() if within(name, "bench")])
def test_a_benchmark_can_be_imported(name):
    """Benchmarks run rarely: that they fit the code is seen by this and by mypy."""
    importlib.import_module(name)


# The rooms of Polynya, each with the rooms that it may import.
OURS = [
    ("runtime/", set()),
    ("types/", {"runtime"}),
    ("ducklake/", {"types", "runtime"}),
    ("ducklake/rows/", {"runtime"}),
    ("ducklake/connection/", {"runtime"}),
    ("ducklake/queries/", {"ducklake", "runtime"}),
    ("ducklake/writes/", {"ducklake", "types", "runtime"}),
    ("iceberg/", {"types", "runtime"}),
    ("rest/", {"iceberg", "runtime"}),
    ("storage/", {"runtime"}),
    ("mapping/", {"rest", "iceberg", "ducklake", "types", "runtime"}),
    ("virtual_files/", {"mapping", "iceberg", "ducklake", "storage", "runtime"}),
    ("access/", {"virtual_files", "mapping", "rest", "ducklake", "storage", "runtime"}),
    (
        "commits/",
        {
            *("access", "virtual_files", "mapping", "rest", "iceberg", "ducklake"),
            *("types", "storage", "runtime"),
        },
    ),
    (
        "catalog/",
        {
            *("commits", "access", "virtual_files", "mapping", "rest"),
            *("iceberg", "ducklake", "storage", "runtime"),
        },
    ),
    ("http/", {"catalog", "commits", "access", "virtual_files", "rest", "storage", "runtime"}),
    ("aws_lambda/", {"http", "catalog", "access", "virtual_files", "storage", "runtime"}),
]


def test_every_room_has_a_rule_here():
    rooms = {path.relative_to(PACKAGE).parts[0] for path in MODULES} - {"__init__.py"}
    assert rooms == {folder.split("/")[0] for folder, _ in OURS}


@pytest.mark.parametrize(("folder", "allowed"), OURS, ids=[folder for folder, _ in OURS])
def test_a_part_imports_only_the_parts_below_it(folder, allowed):
    itself = "polynya." + folder.removesuffix(".py").rstrip("/").replace("/", ".")
    ours = {one for one in IMPORTS if one.by.startswith(folder) and within(one.of, "polynya")}
    below = {f"polynya.{name}" for name in allowed}
    assert {one for one in ours if not within(one.of, itself, *below)} == set()
    assert (PACKAGE / folder).exists()


def test_mapping_does_not_read_history():
    """It imports records and pure functions of `history`, never `read` (needs a connection)."""
    history = "polynya.ducklake.queries.history"
    taken = {
        one.of
        for one in of_folder("mapping/")
        if within(one.of, "polynya.ducklake.queries.history")
    }
    names = {"State", "TableHistory", "Totals", "states", "state_at", "unservable_reason"}
    assert taken <= {f"{history}.{name}" for name in names}


# They depend on numpy, and no other module may load them at its import.
COLUMNAR = {
    "iceberg/avro/columnar.py",
    "iceberg/avro/row_encoder.py",
    "mapping/bounds.py",
    "mapping/claims.py",
    "mapping/data_files.py",
}

# Those of the application; `http/file_by_key.py` and `http/conditions.py` need none, and functions/
# object_lambda has none.
HTTP = {f"http/{name}.py": False for name in ("application", "calls", "reading", "writing")}

# A dependency and the modules that may import it; True: only lazily.
THIRD_PARTY = [
    ("pg8000", {"ducklake/": False}),
    ("fastavro", {"iceberg/": False}),
    ("deflate", {"iceberg/avro/container.py": False}),
    ("duckdb", {"iceberg/": True}),
    ("pyroaring", {"iceberg/": True}),
    ("mmh3", {"iceberg/": True}),
    (
        "numpy",
        dict.fromkeys(COLUMNAR, False)
        | dict.fromkeys(
            (
                "iceberg/deletion_vector.py",
                "iceberg/parquet/column_values.py",
                "iceberg/parquet/delete_files.py",
                "types/numbers.py",
            ),
            True,
        ),
    ),
    ("boto3", {"storage/aws.py": True}),
    ("snapshot_restore_py", {"storage/aws.py": True}),
    ("opentelemetry", {"runtime/metrics.py": True}),
    (
        "botocore",
        dict.fromkeys(
            (
                "storage/aws.py",
                "storage/direct_s3.py",
                "storage/objects.py",
            ),
            True,
        ),
    ),
    (
        "aws_lambda_powertools",
        {
            "storage/file_cache.py": False,
            "storage/cache_store.py": False,
            "storage/bucket_store.py": False,
            "access/vended_credentials.py": False,
            "runtime/metrics.py": False,
            "aws_lambda/api_handler.py": False,
            "aws_lambda/object_handler.py": False,
            "http/": False,
        },
    ),
    ("fastapi", HTTP),
    ("starlette", HTTP | {"aws_lambda/api_handler.py": False}),
    ("mangum", {"aws_lambda/api_handler.py": False}),
    ("pydantic", {"rest/": False}),
    # boto3 has it
    ("urllib3", {"storage/direct_s3.py": True, "aws_lambda/real_objects.py": False}),
    ("requests", {}),
    *((name, {}) for name in ("pyarrow", "pyiceberg", "pandas", "uvicorn", "moto")),
    *((name, {}) for name in ("polynya_local", "functions", "polynya_pipeline")),
    ("tests", {}),
]


def test_modules_that_depend_on_numpy_are_loaded_only_when_needed():
    names = ["polynya." + path.removesuffix(".py").replace("/", ".") for path in COLUMNAR]
    loaded = {one for one in IMPORTS if within(one.of, *names) and not one.lazy}
    assert {one.by for one in loaded} <= COLUMNAR


OWN_PROCESSES = ("native_", "preview", "changed_rows", "profile", "visitor_sql")
"""What reports run in a process of its own, by how the modules begin."""


def test_reports_let_duckdb_read_in_a_process_of_its_own():
    users = {one.by for one in LOCAL_IMPORTS if within(one.of, "duckdb")}
    reports = {Path(path).name for path in users if "/reports/" in path or "/page/" in path}
    assert "native_reader.py" in reports
    assert {name for name in reports if not name.startswith(OWN_PROCESSES)} == set()


# They pass a connection on and name its type; only `ducklake/` queries the database.
ANNOTATED = {
    "access/authorized_lake.py",
    "access/table_scope.py",
    "access/vended_credentials.py",
    "catalog/events.py",
    "catalog/reader.py",
    "catalog/warehouse.py",
    "catalog/writer.py",
    "commits/write/plans.py",
    "virtual_files/added_file_columns.py",
    "virtual_files/contexts.py",
    "virtual_files/position_deletes.py",
    "virtual_files/variants.py",
    "virtual_files/virtual_files.py",
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
        one for one in FUNCTION_IMPORTS if within(one.of, "functions", "polynya_local", "tests")
    ]
    assert foreign == []
    # In Lambda the module is called `app`, so a relative import has no parent package.
    assert not any(
        isinstance(node, ast.ImportFrom) and node.level
        for path in FUNCTIONS
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_functions_have_no_rows_no_sql_and_no_avro():
    hidden = ("polynya.iceberg", "polynya.mapping", "polynya.ducklake")
    seen = {one.of for one in FUNCTION_IMPORTS if within(one.of, *hidden)}
    assert seen == set()


SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE(?! /)|FROM|WHERE|JOIN|COPY|CAST|CREATE|UNION|BEGIN)\b"
)
SQL_HERE = {
    "ducklake/connection/catalog_connection.py",
    "ducklake/connection/database.py",
    *(
        f"ducklake/queries/{name}.py"
        for name in (
            *("catalog", "changed_tables", "data_files", "delete_rows", "file_columns"),
            "snapshot_changes",
            "state_changes",
            *("file_sums", "new_rows", "planned_files"),
            *("inlined_tables", "lifetimes", "named_objects", "table_columns", "writers"),
        )
    ),
    *(
        f"ducklake/writes/{name}.py"
        for name in (
            *("new_files", "new_snapshot", "inlined", "objects", "partitionings", "rows", "stats"),
            *("changed_uploads", "staged_files", "tables"),
        )
    ),
    "iceberg/parquet/column_values.py",
    "iceberg/parquet/delete_files.py",
    "iceberg/parquet/generated_files.py",
    "iceberg/parquet/kept_rows.py",
    "iceberg/parquet/key_rows.py",
    "iceberg/parquet/metadata.py",
    "iceberg/parquet/struct_nulls.py",
    "iceberg/sandbox.py",
    "iceberg/view_text.py",
    "mapping/rows_files.py",
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
    # "DELETE" alone is the method of a request.
    found = [text for text in texts(path) if SQL.search(text) and text != "DELETE"]
    assert bool(found) == (str(path.relative_to(PACKAGE)) in SQL_HERE), found


PIPELINE = sorted(ROOT.glob("pipeline/polynya_pipeline/**/*.py"))
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
    by = f"polynya_pipeline/{folder}"
    found = [
        one._replace(of=one.of.removeprefix("polynya_pipeline."))
        for one in PIPELINE_IMPORTS
        if one.by.startswith(by) and within(one.of, "polynya_pipeline")
    ]
    assert found or not (ROOT / "pipeline" / by).is_dir(), f"{by} imports nothing: was it moved?"
    return found


@pytest.mark.parametrize(
    ("folder", "allowed"), PIPELINE_ARROWS, ids=[folder for folder, _ in PIPELINE_ARROWS]
)
def test_jobs_import_only_shared_modules(folder, allowed):
    itself = folder.removesuffix(".py").rstrip("/")
    foreign = {one for one in pipeline_imports(folder) if not within(one.of, itself, *allowed)}
    assert foreign == set()


def test_every_module_of_the_pipeline_is_shared_or_belongs_to_a_job():
    folders = {path.relative_to(ROOT / "pipeline/polynya_pipeline").parts[0] for path in PIPELINE}
    arrows = {folder.rstrip("/") for folder, _ in PIPELINE_ARROWS}
    assert folders == arrows | {"__init__.py", "__main__.py"}


def test_the_pipeline_imports_neither_the_functions_nor_local():
    foreign = ("functions", "polynya_local", "tests")
    assert [one for one in PIPELINE_IMPORTS if within(one.of, *foreign)] == []


# The parts of `polynya` that the jobs may import. `publish` may import everything, because it
# generates the functions' own files. The other jobs read the catalog themselves; `ingest` commits
# as Iceberg clients do, from a plan on.
POLYNYA_IN_JOBS = {
    "catalog.database_credentials",
    "catalog.lakes_document",
    "commits.attempts",
    "commits.plan.table_plan",
    "commits.write.plans.write_plans",
    "ducklake.connection",
    "ducklake.paths",
    "ducklake.queries",
    "ducklake.rows",
    "ducklake.column_tree",
    "ducklake.writes",
    "mapping.properties.COMMENT",
    "mapping.tables.check_lake",
    "runtime.errors",
    "runtime.namespaces",
    "runtime.prefetch.AT_A_TIME",
    "runtime.printable",
    "storage.aws",
    "storage.s3_locations",
    "storage.objects",
    "types",
}


@pytest.mark.parametrize("folder", ["common/", "ingest/", "verify/"])
def test_a_job_imports_only_the_catalog_of_polynya(folder):
    by = f"polynya_pipeline/{folder}"
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
    is_pure = path.stem == "__init__"
    assert bool(found) == (is_writer and not is_pure), found


WRITERS = (
    *("ducklake/writes/", "polynya_pipeline/ingest/", "catalog/", "commits/"),
    *("polynya_local/writes.py", "polynya_local/repair.py", "polynya_local/s3/uploads.py"),
    *("polynya_local/lakes/catalog_writer.py", "polynya_local/demo/writes.py"),
)
RECORDS = ("polynya.ducklake.writes.new_files", "polynya.ducklake.writes.stats")


def test_only_ingest_and_commits_import_what_changes_the_catalog():
    everything = [*IMPORTS, *FUNCTION_IMPORTS, *PIPELINE_IMPORTS, *LOCAL_IMPORTS]
    writers = {
        one.by
        for one in everything
        if within(one.of, "polynya.ducklake.writes") and not within(one.of, *RECORDS)
    }
    assert writers
    assert {by for by in writers if not by.startswith(WRITERS)} == set()


SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
HOSTED_BY_AWS = ("functions", "mangum", "polynya.aws_lambda")
"""What answers Lambda's events; `polynya serve` calls the application itself."""


def test_nothing_in_the_wheel_imitates_aws():
    """What a test needs in order to believe in a deployment is in tests/aws."""
    bases, [name] = (SETUPTOOLS["packages"]["find"][key] for key in ("where", "include"))
    wheel = {path for base in bases for path in ROOT.glob(f"{base}/{name}/**/*.py")}
    assert wheel == {*MODULES, *LOCAL, *PIPELINE}
    imported = [*IMPORTS, *LOCAL_IMPORTS, *PIPELINE_IMPORTS]
    # The demo needs an S3, and nobody has one at hand.
    assert {(one.by, one.of) for one in imported if within(one.of, "moto", "tests")} == {
        ("polynya_local/demo/environment.py", "moto.server.ThreadedMotoServer")
    }
    hosted = {one.by for one in imported if within(one.of, *HOSTED_BY_AWS)}
    assert {by for by in hosted if not by.startswith("aws_lambda/")} == set()


def test_moto_is_installed_for_the_demo_alone():
    dynamic = SETUPTOOLS["dynamic"]
    parts = {"": dynamic["dependencies"], **dynamic["optional-dependencies"]}
    files = [(part, ROOT / path) for part, listed in parts.items() for path in listed["file"]]
    assert {part for part, path in files if "moto" in path.read_text()} == {"demo"}


def test_queries_of_the_page_have_the_rules_of_those_in_ducklake():
    """They only read, and import nothing but DuckLake's side and themselves."""
    modules = sorted(ROOT.glob("local/polynya_local/queries/*.py"))
    assert len(modules) > 5
    taken = {one.of for path in modules for one in imports(path)}
    ours = {of for of in taken if of.startswith("polynya")}
    allowed = ("polynya.ducklake", "polynya.types", "polynya_local.queries")
    assert {of for of in ours if not within(of, *allowed)} == set()
    assert [text for path in modules for text in texts(path) if WRITES.search(text)] == []


# Each is the counterpart of something beside it that the layer needs.
ASKED_BY_LOCAL_ALONE = {
    # The SQL of `columns`, and of `known_locations`, with another condition.
    *("table_columns.columns_of_tables", "writers.locations_of_names"),
    # What `writes.new_snapshot.set_up` takes.
    "writers.writer_rights",
}


def named_objects(path: Path) -> set[str]:
    """The objects that a module imports, and the members of imported modules that it names."""
    imported = {one.of for one in imports(path)}
    by_name = {of.rpartition(".")[2]: of for of in imported}
    return imported | {
        f"{by_name[node.value.id]}.{node.attr}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in by_name
    }


def test_the_layer_has_no_query_that_only_local_asks():
    """Such a query is in polynya_local/queries/, beside those of the page."""
    package, folder = "polynya.ducklake.queries", PACKAGE / "ducklake/queries"
    users = [path for path in (*MODULES, *FUNCTIONS, *PIPELINE) if path.name != "__init__.py"]
    used = {name for path in users for name in named_objects(path)}
    exported = {one.of for one in imports(folder / "__init__.py")}
    used |= {of for of in exported if f"{package}.{of.rpartition('.')[2]}" in used}
    unused = set()
    for path in folder.glob("*.py"):
        parts = ast.parse(path.read_text()).body
        for part in parts:
            if not isinstance(part, ast.FunctionDef) or part.name.startswith("_"):
                continue
            others = (node for other in parts if other is not part for node in ast.walk(other))
            is_used_here = any(
                isinstance(node, ast.Name) and node.id == part.name for node in others
            )
            if not is_used_here and f"{package}.{path.stem}.{part.name}" not in used:
                unused.add(f"{path.stem}.{part.name}")
    assert unused == ASKED_BY_LOCAL_ALONE


COLD_STARTS = [
    (
        "functions.rest_catalog.app",
        {"duckdb", "numpy", "pyarrow", "pyroaring", "boto3", "aws_xray_sdk"},
    ),
    (
        "functions.commits.app",
        {"duckdb", "numpy", "pyarrow", "pyroaring", "boto3", "aws_xray_sdk"},
    ),
    (
        "functions.object_lambda.app",
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


# How many times each of these files changes os.environ.
ENVIRONMENT_IS_WRITTEN = {
    # prometheus_client reads its folder when it is imported.
    "local/polynya_local/served_lake.py": 1,
    # A process that parses what others wrote has no credentials.
    "local/polynya_local/builders.py": 1,
    # Spark's JVM reads it, and so do the programs that the demo starts.
    "local/polynya_local/clients/spark.py": 2,
    "local/polynya_local/demo/environment.py": 3,
    "local/polynya_local/demo/pipeline.py": 1,
    "local/polynya_local/demo/processes.py": 2,
}
CHANGES_OF_A_MAPPING = {"setdefault", "update", "pop", "popitem", "clear"}


def writes_of_the_environment(tree: ast.AST) -> list[int]:
    """The lines that change os.environ."""

    def is_environ(node: ast.AST) -> bool:
        return ast.unparse(node) in ("os.environ", "os.environb")

    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if is_environ(value):
                lines.append(node.lineno)
            case ast.AugAssign(target=target) if is_environ(target):
                lines.append(node.lineno)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if (
                is_environ(value) and name in CHANGES_OF_A_MAPPING
            ):
                lines.append(node.lineno)
            case ast.Attribute(attr="putenv" | "unsetenv"):
                lines.append(node.lineno)
    return lines


def test_every_way_to_write_the_environment_is_seen():
    ways = [
        *("os.environ['A'] = 'b'", "os.environ |= {}", "del os.environ['A']", "os.putenv(a, b)"),
        *("os.environ.setdefault('A', 'b')", "os.environ.update(A='b')", "os.environ.pop('A')"),
    ]
    assert [writes_of_the_environment(ast.parse(way)) for way in ways] == [[1]] * len(ways)
    assert writes_of_the_environment(ast.parse("a = os.environ['A'] or os.environ.get('B')")) == []


def test_settings_travel_in_values_not_in_the_environment():
    """Applications with other settings live in one process, which has one environment."""
    written = {
        str(path.relative_to(ROOT)): len(lines)
        for folder in ("local", "layers", "functions")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := writes_of_the_environment(ast.parse(path.read_text())))
    }
    assert written == ENVIRONMENT_IS_WRITTEN
