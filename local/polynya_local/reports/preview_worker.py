"""The process that reads previews, because DuckDB's Iceberg extension can abort a process.

It answers one question after the other, each in parts, so that finished parts are not lost when the
time is over. `PreviewReader` asks the process, and ends it if it does not answer in time.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, overload

import duckdb
from duckdb.sqltypes import DuckDBPyType
from polynya.runtime.errors import BadRequest
from polynya.types.names import INTEGERS

from ..clients.duckdb import identifier, literal
from ..processes.serving import KEY_ID, REGION, SECRET
from ..processes.spawned import spawned
from . import changed_rows
from .changed_rows import BEFORE, ChangesAnswer, ChangesQuestion
from .native_duckdb import redacted, secrets_of
from .preview import (
    AUTHORITY,
    Answer,
    Count,
    Download,
    DownloadAnswer,
    Endpoints,
    IcebergDuckDB,
    Limits,
    NativeDuckDB,
    NoName,
    Question,
    Refusal,
    Rows,
    TimeIsOver,
    interrupt_after,
    limit_memory,
    planned,
    query,
)
from .preview_sql import (
    Cell,
    Condition,
    DifferentColumns,
    Side,
    cell,
    cells,
    checksum,
    ordered,
    python_value,
    row_of,
    shortened,
    side,
    where,
)
from .profile import ProfileAnswer, ProfileQuestion, profile
from .visitor_sql import (
    NoSelect,
    SqlAnswer,
    SqlDownload,
    SqlQuestion,
    checked,
    exact_columns,
    locked,
    rows_of_csv,
)

AnyQuestion = Question | ChangesQuestion | Download | ProfileQuestion | SqlDownload | SqlQuestion
AnyAnswer = Answer | ChangesAnswer | DownloadAnswer | ProfileAnswer | SqlAnswer
BLANKS: dict[type, Callable[[], AnyAnswer]] = {
    Question: Answer,
    ChangesQuestion: ChangesAnswer,
    Download: DownloadAnswer,
    ProfileQuestion: ProfileAnswer,
    SqlDownload: DownloadAnswer,
    SqlQuestion: SqlAnswer,
}
"""The type of the answer, by the type of the question."""
PARTS: dict[type, tuple[str, ...]] = {
    Answer: ("rows", "planned", "iceberg", "native"),
    ChangesAnswer: ("counts", "rows", "feed", "entries"),
    DownloadAnswer: ("body",),
    ProfileAnswer: ("rows", "columns"),
    SqlAnswer: ("rows",),
}
MOST_BYTES = 4 << 30
"""The most memory of the process, besides `BYTES_OF_THREAD` for each core."""
BYTES_OF_THREAD = 64 << 20
MOST_BYTES_OF_FILE = 256 << 20
"""The largest file that the process may write: a download is checked only when it is whole."""
SUGGESTION = " Did you mean "
"""Where DuckDB's error about a missing table begins to name existing ones."""
STARTED, END, FAILED = "started", "end", "failed"
Part = tuple[str, Any]
IN_EACH_FILE = "({}) OR random() < 0"
"""A condition that keeps DuckDB from skipping files by their statistics."""
EXPIRED = "snapshots in between have expired, and the change feed lacks what they did"
WITHOUT_STATISTICS = "'statistics_propagation,compressed_materialization'"
"""DuckDB's optimizers that rely on the statistics of a column."""


def run(pipe: Connection, endpoints: Endpoints) -> None:
    """Answer questions until the pipe is closed: STARTED, each part, then END; or FAILED."""
    # DuckDB's own limit does not cover what some functions allocate for one value.
    most = MOST_BYTES + (os.cpu_count() or 1) * BYTES_OF_THREAD
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES_OF_FILE, MOST_BYTES_OF_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    reader = None
    while True:
        try:
            question, limits, token = pipe.recv()
            try:
                reader = reader or Reader(endpoints)
                pipe.send((STARTED, None))
                for part in reader.answer(question, limits, token):
                    pipe.send(part)
                pipe.send((END, None))
            except Exception as error:
                reader = None  # its connections may have a transaction that failed
                pipe.send((FAILED, sentence_of(error, replace(endpoints, token=token))))
        except (EOFError, OSError, KeyboardInterrupt):
            return


def sentence_of(error: Exception, endpoints: Endpoints) -> str:
    """A sentence for the visitor about an error, without passwords."""
    if isinstance(error, TimeIsOver):
        return "it took too long, and was stopped"
    if isinstance(error, (DifferentColumns, NoName, NoSelect, TooLarge)):
        return str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return "it needs more memory than a preview may have"
    words = f"{type(error).__name__}: {redacted(error, secrets_of(endpoints.database))}"
    # Native DuckLake may name tables that a caller may not see.
    return words.partition(SUGGESTION)[0] if endpoints.token else words


class TooLarge(Exception):
    """A file exceeds a limit; the message says which."""


class Reader:
    """Answers questions with both DuckDBs."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints, self._limits = endpoints, Limits()
        self._iceberg, self._native = IcebergDuckDB(endpoints), NativeDuckDB(endpoints)
        self._deadline = 0.0

    def answer(self, question: AnyQuestion, limits: Limits, token: str = "") -> Iterator[Part]:
        """Yield the parts of the answer, the most wanted ones first.

        Args:
            token: the caller's, for the Iceberg endpoints; empty: they need none.
        """
        self._limits = limits
        self._endpoints = self._iceberg.endpoints = replace(self._endpoints, token=token)
        for database in (self._iceberg, self._native):
            limit_memory(database.con, limits.memory)
        self._deadline = time.monotonic() + self._limits.seconds
        if isinstance(question, ChangesQuestion):
            yield from self._changes(question)
        elif isinstance(question, Download):
            yield from self._download(question)
        elif isinstance(question, SqlDownload):
            yield from self._sql(question.question, question.format)
        elif isinstance(question, SqlQuestion):
            yield from self._sql(question)
        elif isinstance(question, ProfileQuestion):
            yield from self._profile(question.question)
        else:
            yield from self._preview(question)

    def _preview(self, question: Question) -> Iterator[Part]:
        with self._native.attached(question) as lake, self._iceberg.attached(question) as ice:
            native, iceberg = side(self._native.con, lake), side(self._iceberg.con, ice)
            values, refusal = self._values(question, native)
            if refusal is not None:
                yield "refusal", refusal
                return
            yield self._part("rows", self._rows, question, iceberg, native)
            if question.first:
                yield "note", "the first page compares the rows of all pages"
                return
            bytes_left = question.bytes
            if question.conditions:
                name, part = self._part("planned", self._planned, question, values)
                bytes_left = bytes_left if isinstance(part, str) else part.bytes
                yield name, part
            if bytes_left > self._limits.compared_bytes:
                limit = f"{self._limits.compared_bytes / 1e6:,.0f} MB"
                yield "note", f"the filter leaves more than the {limit} that are compared"
                return
            name, count = self._part(
                "iceberg", self._count, question, self._iceberg.con, iceberg, native
            )
            yield name, count
            yield from self._native_parts(question, native, count)

    def _download(self, download: Download) -> Iterator[Part]:
        question = download.question
        with self._native.attached(question) as lake, self._iceberg.attached(question) as ice:
            native, iceberg = side(self._native.con, lake), side(self._iceberg.con, ice)
            _, refusal = self._values(question, native)
            if refusal is not None:
                yield "refusal", refusal
                return
            yield self._part("body", self._file, download, iceberg, native)

    def _file(self, download: Download, iceberg: Side, native: Side) -> bytes:
        """All rows of a question as the bytes of one file.

        Raises:
            TooLarge: there are more rows, or bytes, than a download may have.
        """
        question, limits, con = download.question, self._limits, self._iceberg.con
        condition, parameters = where(question.conditions, iceberg.columns, native.columns)
        names = [name for name in iceberg.columns if name not in question.hidden]
        sql = (
            f"SELECT {', '.join(map(identifier, names))} FROM {iceberg.source} WHERE {condition}"
            f"{ordered(question.sort, is_descending=question.is_descending)} "
            f"LIMIT {limits.download_rows + 1}"
        )
        try:
            query(con, f"CREATE OR REPLACE TEMP TABLE download AS {sql}", parameters, self._left)
            [(rows,)] = query(con, "SELECT count(*) FROM download", [], self._left)
            with TemporaryDirectory() as folder:
                path = Path(folder) / "rows"
                options = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet"}
                query(
                    con,
                    f"COPY download TO {literal(str(path))} ({options[download.format]})",
                    [],
                    self._left,
                )
                return self._fitting_file(path, rows)
        finally:
            con.execute("DROP TABLE IF EXISTS download")

    def _fitting_file(self, path: Path, rows: int) -> bytes:
        """The bytes of a file.

        Raises:
            TooLarge: it has more rows, or bytes, than a download may have.
        """
        limits = self._limits
        if rows > limits.download_rows:
            raise TooLarge(f"the file would have more than {limits.download_rows:,} rows")
        if path.stat().st_size > limits.download_bytes:
            raise TooLarge(f"the file would have more than {limits.download_bytes / 1e6:,.0f} MB")
        return path.read_bytes()

    def _profile(self, question: Question) -> Iterator[Part]:
        con = self._iceberg.con
        try:
            with self._iceberg.attached(question) as source:
                table = side(con, source)
                names = [name for name in table.columns if name not in question.hidden]
                rows, columns = profile(
                    table,
                    names[: self._limits.columns],
                    lambda sql, parameters: query(con, sql, parameters, self._left),
                )
        except Exception as error:
            yield "columns", sentence_of(error, self._endpoints)
        else:
            yield "rows", rows
            yield "columns", tuple(columns)

    def _sql(self, question: SqlQuestion, format: str = "") -> Iterator[Part]:
        started = time.monotonic()
        with (
            TemporaryDirectory() as folder,
            locked(self._endpoints, question, self._limits, folder) as con,
        ):
            if format:
                yield self._part("body", self._sql_file, question, con, Path(folder), format)
                return
            yield self._part("rows", self._sql_rows, question, con)
        yield "seconds", round(time.monotonic() - started, 3)

    def _sql_rows(self, question: SqlQuestion, con: duckdb.DuckDBPyConnection) -> Rows:
        limits = self._limits
        with interrupt_after(con, self._left):
            relation = con.sql(checked(con, question.text))
            types = relation.types[: limits.columns]
            texts = (cell(f"#{i}", type_, limits.characters) for i, type_ in enumerate(types, 1))
            fetched = relation.project(", ".join(texts)).limit(limits.rows + 1).fetchall()
        return self._shown(fetched, relation.columns, types)

    def _sql_file(
        self, question: SqlQuestion, con: duckdb.DuckDBPyConnection, folder: Path, format: str
    ) -> bytes:
        path, limits = folder / "rows", self._limits
        with interrupt_after(con, self._left):
            relation = con.sql(checked(con, question.text)).limit(limits.download_rows + 1)
            if format == "csv":
                relation.to_csv(str(path), header=True)
            else:
                relation.project(", ".join(exact_columns(relation))).to_parquet(str(path))
        with interrupt_after(con, self._left):
            is_csv = format == "csv"
            rows = rows_of_csv(path) if is_csv else len(con.read_parquet(str(path)))
        return self._fitting_file(path, rows)

    def _changes(self, question: ChangesQuestion) -> Iterator[Part]:
        limits, con = self._limits, self._native.con
        readers = changed_rows.Readers(
            self._iceberg.con,
            lambda con, sql, parameters: query(con, sql, parameters, self._left),
            limits.rows,
            limits.columns,
            limits.characters,
        )
        native: tuple[duckdb.DuckDBPyConnection, str] | str
        iceberg: tuple[str, str | None] | str
        with ExitStack() as stack:
            try:
                native = con, stack.enter_context(self._native.attached(question.after))
            except Exception as error:
                native = sentence_of(error, self._endpoints)
            if question.expired:
                native = EXPIRED
            try:
                after = stack.enter_context(self._iceberg.attached(question.after))
                before = None
                if question.parent is not None:
                    # Entries name files by their names at the later snapshot.
                    before = f"{after} AT (VERSION => {question.parent:d})"
                elif question.before is not None:
                    table = self._iceberg.attached(question.before, BEFORE)
                    before = stack.enter_context(table)
                iceberg = after, before
            except Exception as error:
                iceberg = sentence_of(error, self._endpoints)
            # After a column got a wider type, its statistics cover only new rows.
            con.execute(f"SET disabled_optimizers = {WITHOUT_STATISTICS}")
            stack.callback(con.execute, "RESET disabled_optimizers")
            yield from changed_rows.parts(question, readers, self._part, native, iceberg)

    def _native_parts(self, question: Question, native: Side, iceberg: Any) -> Iterator[Part]:
        """DuckLake's count; if it differs from Iceberg's, also the count without skipping files."""
        about = (question, self._native.con, native, native)
        name, count = self._part("native", self._count, *about)
        if (
            not question.conditions
            or isinstance(count, str)
            or count == iceberg
            or question.bytes > self._limits.compared_bytes
        ):
            yield name, count
            return
        name, every = self._part("native", self._count, *about, IN_EACH_FILE)
        yield name, every
        if every != count:
            yield "native_skipping", count

    def _part(self, name: str, work: Callable[..., Any], *about: Any) -> Part:
        """The name of a part, with its value or with the reason why it is missing."""
        try:
            return name, work(*about)
        except Exception as error:
            return name, sentence_of(error, self._endpoints)

    @property
    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _values(self, question: Question, native: Side) -> tuple[list[Any], Refusal | None]:
        """The values of the conditions in Python's types, or why a value is not of its type.

        A value is None if the condition has none, or an infinite one.
        """
        values: list[Any] = []
        for condition in question.conditions:
            if condition.value is None:
                values.append(None)
                continue
            type_ = str(native.columns[condition.column])
            sql = python_value(condition, type_)
            try:
                [(value,)] = query(
                    self._native.con, sql, [condition.value] * sql.count("?"), self._left
                )
            except duckdb.Error:
                return [], Refusal(_no_such_value(condition, type_))
            if not _is_exact(condition, value):
                return [], Refusal(_no_such_value(condition, type_))
            values.append(value)
        return values, None

    def _rows(self, question: Question, iceberg: Side, native: Side) -> Rows:
        limits = self._limits
        names = [name for name in iceberg.columns if name not in question.hidden]
        shown = names[: limits.columns]
        condition, parameters = where(question.conditions, iceberg.columns, native.columns)
        sql = (
            f"SELECT {cells(shown, iceberg.columns, limits.characters)} FROM {iceberg.source} "
            f"WHERE {condition}{ordered(question.sort, is_descending=question.is_descending)} "
            f"LIMIT {limits.rows + 1} OFFSET {question.first:d}"
        )
        fetched = query(self._iceberg.con, sql, parameters, self._left)
        return self._shown(fetched, names, [iceberg.columns[name] for name in shown])

    def _shown(
        self, fetched: list[tuple[Any, ...]], names: list[str], types: Sequence[DuckDBPyType]
    ) -> Rows:
        """Rows as they are shown.

        Args:
            fetched: two columns for each that is shown, as `cells` selects them; with one row more
                than is shown, if there are more.
            types: of the columns that are shown.
        """
        rows = [row_of(row) for row in fetched[: self._limits.rows]]
        fitting = rows[: _fitting(rows, self._limits.bytes)]
        return Rows(
            columns=tuple(names[: len(types)]),
            types=tuple(map(str, types)),
            rows=tuple(fitting),
            has_more=len(fetched) > len(fitting),
            columns_left_out=len(names) - len(types),
        )

    def _planned(self, question: Question, values: list[Any]) -> Any:
        pairs = zip(question.conditions, values, strict=True)
        if any(condition.value is not None and value is None for condition, value in pairs):
            raise ValueError("Iceberg's filters have no infinity")
        properties: dict[str, Any] = {
            "type": "rest",
            "uri": self._endpoints.catalog_uri,
            "warehouse": self._endpoints.pinned(question.snapshot),
            "s3.endpoint": self._endpoints.s3_endpoint,
            "s3.access-key-id": KEY_ID,
            "s3.secret-access-key": SECRET,
            "s3.region": REGION,
        }
        if token := self._endpoints.token:
            # Keys for S3 come with the table.
            properties = {k: v for k, v in properties.items() if not k.startswith("s3.")}
            properties |= {"token": token}
        if authority := os.environ.get(AUTHORITY):
            properties |= {"ssl": {"cabundle": authority}}
        name = (*question.namespace, question.table)
        return planned(properties, name, question.conditions, values)

    def _count(
        self,
        question: Question,
        con: duckdb.DuckDBPyConnection,
        table: Side,
        native: Side,
        meets: str = "{}",
    ) -> Count:
        started = time.monotonic()
        condition, parameters = where(question.conditions, table.columns, native.columns)
        sums = checksum(table, native.columns, question.hidden)
        sql = f"SELECT {sums} FROM {table.source} WHERE {meets.format(condition)}"
        [(rows, total)] = query(con, sql, parameters, self._left)
        return Count(rows, f"{int(total) % 2**64:016x}", round(time.monotonic() - started, 3))


def _no_such_value(condition: Condition, type_: str) -> str:
    column, value = shortened(condition.column), shortened(condition.value or "")
    return f"the column {column} is a {type_}: {value} is not one"


def _is_exact(condition: Condition, value: Any) -> bool:
    """Whether DuckDB has not rounded a number."""
    if condition.type not in INTEGERS and not condition.type.startswith("decimal"):
        return True
    try:
        return Decimal(condition.value or "") == Decimal(value)
    except InvalidOperation:
        return False


def _fitting(rows: list[tuple[Cell, ...]], limit: int) -> int:
    """How many of the first rows have at most `limit` bytes of text together; at least one."""
    total = 0
    for number, row in enumerate(rows):
        total += sum(len((cell.text or "").encode("utf-8", "replace")) for cell in row)
        if total > limit:
            return max(1, number)
    return len(rows)


START_SECONDS = 60.0
"""The time for the process to start, which takes a second on an idle machine."""
GRACE_SECONDS = 3.0
"""The time for DuckDB to stop after an interrupt."""

STOPPED = "it was stopped"
NOT_IN_TIME = "it took too long, and was stopped"


class PreviewReader:
    """Asks the process, of which there is at most one; questions wait for each other."""

    def __init__(
        self,
        endpoints: Endpoints,
        limits: Limits | None = None,
        new_token: Callable[[], str] | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            new_token: makes a token for the Iceberg endpoints; None: they ask for none.
        """
        self.endpoints, self._new_token = endpoints, new_token
        self.limits = limits or Limits()
        """The limits of the next question."""
        self._lock = Lock()
        self._process: BaseProcess | None = None
        self._is_closed = False
        self.under_way: AnyQuestion | None = None
        self._stopped: AnyQuestion | None = None

    @overload
    def answer(self, question: Question) -> Answer: ...

    @overload
    def answer(self, question: Download | SqlDownload) -> DownloadAnswer: ...

    @overload
    def answer(self, question: ChangesQuestion) -> ChangesAnswer: ...

    @overload
    def answer(self, question: ProfileQuestion) -> ProfileAnswer: ...

    @overload
    def answer(self, question: SqlQuestion) -> SqlAnswer: ...

    def answer(self, question: AnyQuestion) -> AnyAnswer:
        """Answer a question with the parts that arrive in time.

        Raises:
            BadRequest: a value of the filter is not of its column's type.
        """
        with self._lock:
            if self._is_closed:
                return _noted(_blank(question), "the page is being closed")
            try:
                return self._ask(question)
            except (EOFError, OSError):
                code = self._exit_code()
                self._end()
                reason = f"the process that reads ended with {code}"
                return _noted(_blank(question), STOPPED if question == self._stopped else reason)
            finally:
                self.under_way = None

    def stop(self, question: AnyQuestion) -> None:
        """End the process if this is the last question that it got."""
        if question == self.under_way:
            self._stopped = question
            self._kill()

    def close(self) -> None:
        """End the process, if there is one, and with it the question under way."""
        self._is_closed = True
        self._kill()
        with self._lock:
            self._end()

    def _kill(self) -> None:
        # The process may end or be closed at the same time.
        with suppress(AttributeError, ValueError):
            if self._process is not None:
                self._process.kill()

    def _ask(self, question: AnyQuestion) -> AnyAnswer:
        self._start()
        self.under_way, self._stopped = question, None
        token = self._new_token() if self._new_token else ""
        self._pipe.send((question, self.limits, token))
        deadline = time.monotonic() + START_SECONDS
        answer, name = _blank(question), ""
        while name != END:
            if not self._pipe.poll(max(0.0, deadline - time.monotonic())):
                # Some statements end only with their process.
                self._end()
                return _noted(answer, NOT_IN_TIME)
            name, part = self._pipe.recv()
            if name == STARTED:
                deadline = time.monotonic() + self.limits.seconds + GRACE_SECONDS
            elif name == FAILED:
                return _noted(answer, part)
            elif isinstance(part, Refusal):
                self._pipe.recv()  # END
                raise BadRequest(part.sentence)
            elif name != END:
                answer = _add_part(answer, name, part)
        return answer

    def _start(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        self._end()
        self._process, self._pipe = spawned(run, self.endpoints)

    def _exit_code(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(1)
        return self._process.exitcode

    def _end(self) -> None:
        if self._process is None:
            return
        self._pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()
        self._process = None


def _blank(question: AnyQuestion) -> AnyAnswer:
    return BLANKS[type(question)]()


def _add_part(answer: AnyAnswer, name: str, part: Any) -> AnyAnswer:
    """The answer with one more part, or with a note about it."""
    if name == "note":
        return replace(answer, notes={**answer.notes, "iceberg": part, "native": part})
    if isinstance(part, str):
        return replace(answer, notes={**answer.notes, name: part})
    return replace(answer, **{name: part})


def _noted(answer: AnyAnswer, sentence: str) -> AnyAnswer:
    """The answer with a note for each part that is missing."""
    missing = [
        p for p in PARTS[type(answer)] if getattr(answer, p) is None and p not in answer.notes
    ]
    return replace(answer, notes={**answer.notes, **dict.fromkeys(missing, sentence)})
