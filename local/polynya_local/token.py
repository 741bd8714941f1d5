"""`polynya token`: makes a token for a person or a program."""

import os
from pathlib import Path
from typing import Annotated

import typer
from polynya_pipeline.common.errors import say

from .access.token_file import new_line


def token(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="Who gets it, as the policy and the audit log call the caller.",
        ),
    ],
    file: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="The file for `polynya serve --tokens`, to which a line is added.",
        ),
    ],
) -> None:
    """Make a token for `polynya serve --tokens`.

    Prints the token, which is stored nowhere: the file gets its hash. To revoke a token, remove its
    line.
    """
    try:
        secret, line = new_line(name)
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "rb+") as stream:
            size = stream.seek(0, os.SEEK_END)
            is_whole = not size or (stream.seek(-1, os.SEEK_END) >= 0 and stream.read(1) == b"\n")
            stream.write(f"{'' if is_whole else os.linesep}{line}\n".encode())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from None
    except OSError as error:
        say(f"{file} cannot be written: {error.strerror}")
        raise typer.Exit(1) from None
    say(f"{name} may call with this token, which is shown only once:")
    print(secret)
