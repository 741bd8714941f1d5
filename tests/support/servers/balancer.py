"""A balancer: a TCP proxy that gives each connection to one of several servers by chance."""

import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .slow_servers import HOST, _copy, _listening


@contextmanager
def balancing(ports: Sequence[int]) -> Iterator[int]:
    """A balancer of local servers, without those that refuse connections; yields its port.

    Args:
        ports: of the servers; more may come.
    """

    def relay(client: socket.socket) -> None:
        for port in random.sample(ports, len(ports)):
            try:
                server = socket.create_connection((HOST, port))
            except OSError:
                continue
            with server:
                asking = threading.Thread(target=_copy, args=(client, server, 0.0))
                asking.start()
                _copy(server, client, 0.0)
                asking.join()
            return
        client.close()

    with _listening(relay) as own_port:
        yield own_port
