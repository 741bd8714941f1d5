"""A proxy before PostgreSQL that cuts a connection at a statement of a transaction that writes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from .slow_servers import HOST, PIECE, _end, _listening

BEGIN_WRITE = b"READ WRITE"
COMMIT = b"COMMIT\0"


@dataclass
class Cuts:
    """What the proxy does; a cut is done once."""

    at_piece: int | None = None
    """Cut before this piece of what the next transaction that writes sends; 0 is BEGIN."""
    before_commit: bool = False
    after_commit: bool = False
    """Forward COMMIT, and lose its answer."""
    then_away: bool = False
    """Refuse all connections after a cut."""
    is_away: bool = False
    done: int = 0
    pieces: int = 0
    loses_answer: bool = False


@contextmanager
def cutting(port: int) -> Iterator[tuple[int, Cuts]]:
    """A proxy of a local server; yields its port and what it does."""
    cuts = Cuts()

    def relay(client: socket.socket) -> None:
        if not cuts.is_away:
            with socket.create_connection((HOST, port)) as server:
                _relay(client, server, cuts)
        _end(client)

    with _listening(relay) as own_port:
        yield own_port, cuts


def _relay(client: socket.socket, server: socket.socket, cuts: Cuts) -> None:
    answering = threading.Thread(target=_answer, args=(client, server, cuts))
    answering.start()
    is_writing = False
    with suppress(OSError):
        while piece := client.recv(PIECE):
            is_writing = is_writing or BEGIN_WRITE in piece
            is_commit = is_writing and COMMIT in piece
            if is_writing and _is_cut_before(piece, is_commit, cuts):
                break
            if is_commit and cuts.after_commit:
                cuts.loses_answer = True
            server.sendall(piece)
            is_writing = is_writing and not is_commit
    _end(server)
    _end(client)
    answering.join()


def _answer(client: socket.socket, server: socket.socket, cuts: Cuts) -> None:
    with suppress(OSError):
        while piece := server.recv(PIECE):
            if cuts.loses_answer:
                cuts.loses_answer = cuts.after_commit = False
                _count(cuts)
                break
            client.sendall(piece)
    _end(client)
    _end(server)


def _is_cut_before(piece: bytes, is_commit: bool, cuts: Cuts) -> bool:
    number = 0 if BEGIN_WRITE in piece else cuts.pieces + 1
    cuts.pieces = number
    if number == cuts.at_piece or (is_commit and cuts.before_commit):
        cuts.at_piece, cuts.before_commit = None, False
        _count(cuts)
        return True
    return False


def _count(cuts: Cuts) -> None:
    cuts.done += 1
    cuts.is_away = cuts.then_away
