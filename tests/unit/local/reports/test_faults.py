"""Broken catalogs and processes that hang stop no report, and no end of the page."""

import multiprocessing
import threading
import time
from types import SimpleNamespace

import pytest
from polynya.storage.aws import AwsSettings
from polynya_local.reports.preview import Download, Endpoints, Question
from polynya_local.reports.preview_worker import PreviewReader
from polynya_local.reports.row_counts import RowCounts


@pytest.mark.parametrize("position", [2, 10**9, -1])
def test_a_delete_of_a_row_that_the_file_does_not_have_is_not_counted(position):
    """`_read` takes a ValueError for: it is not known."""
    broken = SimpleNamespace(_deletes=lambda _: [(0, 5), (position, 5)])
    with pytest.raises(ValueError, match="a row that the file does not have"):
        RowCounts._deaths(broken, None, [1, 3])
    whole = SimpleNamespace(_deletes=lambda _: [(0, 5), (1, 2)])
    assert RowCounts._deaths(whole, None, [1, 3]) == [3, 5]


def test_the_end_does_not_wait_for_a_question(monkeypatch):
    reader = PreviewReader(Endpoints("", "", "", "", "", AwsSettings()))
    context = multiprocessing.get_context("spawn")

    def start() -> None:
        reader._pipe, theirs = context.Pipe()
        reader._process = context.Process(target=time.sleep, args=(60,), daemon=True)
        reader._process.start()
        theirs.close()

    monkeypatch.setattr(reader, "_start", start)
    question = Question(("main",), "t", 1, (), frozenset(), 0)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(reader.answer(question)))
    asking.start()
    while reader._process is None or not reader._process.is_alive():
        time.sleep(0.01)
    started = time.monotonic()
    reader.close()
    asking.join(20)
    assert time.monotonic() - started < 20 and not asking.is_alive()
    assert set(answers[0].notes) == {"rows", "planned", "iceberg", "native"}
    assert reader.under_way is None
    assert "closed" in reader.answer(question).notes["rows"]
    assert "closed" in reader.answer(Download(question, "csv")).notes["body"]
