"""The error of Avro files that others wrote."""


class Malformed(ValueError):
    """The file is not what it has to be; the message says why, without its content."""
