"""A DynamoDB on this machine (moto), with the table that keeps generated files."""

from collections.abc import Iterator
from contextlib import contextmanager

TABLE = "polynya-cache"


@contextmanager
def dynamodb(region: str) -> Iterator[str]:
    """Serve one in memory on a free port of the loopback interface; gives its endpoint."""
    # Imported here: moto is slow to import, and `polynya --help` does not need it.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        create_table(endpoint, region)
        yield endpoint
    finally:
        server.stop()


def create_table(endpoint: str, region: str) -> None:
    """The table as template.yaml describes it."""
    import boto3

    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        # moto takes any; those of the environment may belong to a real S3.
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
    )
