"""Where clients find the lake that the page shows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Addresses:
    """What clients are given: the line of JSON that `polynya serve` prints."""

    catalog_uri: str
    s3_endpoint: str
    warehouse: str
    delivery: str
    writes: bool
    folder: str = ""
    """The local folder with the data, which a bucket stands for; empty: the data is in S3."""
