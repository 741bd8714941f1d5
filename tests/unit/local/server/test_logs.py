"""The log of the server, beside the logs of its applications."""

import logging
from unittest.mock import patch

from polynya.runtime.metrics import function_logger
from polynya_local.server.logs import log_to_stderr


def test_the_log_of_an_application_hides_no_line_of_other_loggers(capsys):
    """`polynya` is one, and the name of each logger of `polynya_local` begins with it."""
    names = ("application_local.page.app", "service_undefined.application.storage", "application.a")
    with patch.object(logging.root, "handlers", []):
        log_to_stderr()
        function_logger("application").warning("of the application")
        for name in names:
            logging.getLogger(name).warning("of %s", name)
    printed = capsys.readouterr().err
    for name in ("the application", *names):
        assert printed.count(f"of {name}") == 1, name


def test_only_warnings_are_written(capsys):
    """The loggers of the layer write more, for Lambda."""
    logger = logging.getLogger("layer")
    logger.setLevel(logging.INFO)
    with patch.object(logging.root, "handlers", []):
        log_to_stderr()
        logger.info("one more")
        logger.warning("one less")
    assert capsys.readouterr().err == "one less\n"
