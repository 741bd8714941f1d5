"""Several questions to the catalog in one statement: a statement is a journey to the database."""

import json
from collections.abc import Callable
from typing import Any, NoReturn

from pg8000.native import Connection

Question = Callable[[Connection], Any]
"""A function that runs one statement, with nothing but it: it is called twice."""


class _Asked(Exception):
    def __init__(self, sql: str, parameters: dict[str, Any]) -> None:
        self.sql, self.parameters = sql, parameters


class _Listener:
    """Takes the place of a connection to hear what is asked."""

    def run(self, sql: str, **parameters: Any) -> NoReturn:
        raise _Asked(sql, parameters)


class _Answer:
    """Takes the place of a connection that has the answer."""

    def __init__(self, rows: list[list[Any]]) -> None:
        self._rows = rows

    def run(self, sql: str, **parameters: Any) -> list[list[Any]]:
        return self._rows


def together(con: Connection, *questions: Question) -> list[Any]:
    """The answers, in the order of the questions.

    Values come as JSON has them, so that a question may ask for numbers, texts, booleans and
    arrays of these. Parameters of the same name must have the same value.
    """
    parameters: dict[str, Any] = {}
    selects = []
    for number, question in enumerate(questions):
        asked = _heard(question)
        if asked is None:
            continue
        selects.append(
            f"SELECT {number}, (SELECT json_agg(row_to_json(q))::text FROM ({asked.sql}) AS q)"
        )
        for name, value in asked.parameters.items():
            if parameters.setdefault(name, value) != value:
                raise ValueError(f"two questions have another {name}")
    found = dict(con.run("\nUNION ALL ".join(selects), **parameters))
    return [
        question(_Answer(_rows(found.get(number)))) for number, question in enumerate(questions)
    ]


def _heard(question: Question) -> _Asked | None:
    """What a question asks; None: it knows the answer by itself."""
    try:
        question(_Listener())
    except _Asked as asked:
        return asked
    return None


def _rows(text: str | None) -> list[list[Any]]:
    # Rows are objects, whose keys may be there twice: their values in order are the row.
    return json.loads(text, object_pairs_hook=lambda pairs: [v for _, v in pairs]) if text else []
