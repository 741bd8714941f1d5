"""A bucket of S3 for this process alone, at a free port of the loopback interface."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..messages import Answer, Request, Response
from ..server.answering import Answering
from ..server.hosts import Hosts
from ..server.uvicorn_server import answering, bound_socket, port_of
from .requests import misdirected


@contextmanager
def loopback(answer: Answer) -> Iterator[str]:
    """Answer requests to S3 during the block; yields the endpoint."""
    listening, hosts = bound_socket(0), Hosts.from_names(())
    port = port_of(listening)

    def checked(request: Request) -> Response:
        refusal = hosts.refusal(request, port)
        return misdirected(refusal) if refusal else answer(request)

    with answering(Answering(checked), listening) as uri:
        yield uri
