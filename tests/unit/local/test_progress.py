"""What a command shows while it works: a spinner on a terminal, one line elsewhere."""

import io
import time

from polynya_pipeline.common import progress
from polynya_pipeline.common.progress import waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, seconds: float) -> str:
    with waiting("Copying the catalog", stream) as stage:
        stage.doing("Copying: 2 tables")
        time.sleep(seconds)
    return stream.getvalue()


def test_a_stream_gets_one_line_for_what_takes_long(monkeypatch):
    monkeypatch.setattr(progress, "LONG", 0.05)
    assert shown(io.StringIO(), 0.3) == "Copying the catalog ...\n"
    assert shown(io.StringIO(), 0) == ""


def test_a_terminal_gets_a_spinner_that_goes_away(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    text = shown(Terminal(), 0.2)
    assert "Copying: 2 tables" in text and text.endswith("\x1b[1A\x1b[2K")
