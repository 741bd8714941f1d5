"""`polynya demo`: not there yet."""


def demo() -> None:
    """Make a lake, serve it, read it with Iceberg clients."""
    raise NotImplementedError
