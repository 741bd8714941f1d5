"""Commits as somebody would write them who wants more than the one table that he may write."""

import io
import json
from copy import copy

import boto3
import fastavro
import pyarrow as pa
import urllib3
from polynya.storage.s3_locations import bucket_and_key

DATA = pa.table({"id": pa.array([1, 2], pa.int64())})


class Attack:
    """The table `main.mine`, beside the table `other.theirs`, which nobody may write."""

    def __init__(self, lake, moto, served, proxy, catalog) -> None:
        self.lake, self.moto, self.served, self.proxy = lake, moto, served, proxy
        self.catalog = catalog
        self.s3 = boto3.client("s3", endpoint_url=moto)
        self.mine = catalog.create_table("main.mine", DATA.schema)
        self.mine.append(DATA)
        self.body = json.loads(proxy.requests[-1].body)
        [self.file] = [task.file for task in self.mine.scan().plan_files()]

    def write(self, name: str, body: bytes) -> str:
        """The location of a file that this writer has put beside its own manifests."""
        [found] = [u["snapshot"] for u in self.body["updates"] if u["action"] == "add-snapshot"]
        location = f"{found['manifest-list'].rpartition('/')[0]}/{name}"
        bucket, key = bucket_and_key(location)
        self.s3.put_object(Bucket=bucket, Key=key, Body=body)
        return location

    def read(self, location: str) -> bytes:
        bucket, key = bucket_and_key(location)
        return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def commit(self, manifest_list: str | None = None, **changes) -> tuple[int, str]:
        """Send the last commit with a new snapshot id, and other changes; status and message."""
        body = json.loads(json.dumps(self.body))
        head = self.mine.refresh().current_snapshot()
        for update in body["updates"]:
            if update["action"] == "add-snapshot":
                update["snapshot"] |= {
                    "snapshot-id": 2**41 + 1,
                    "parent-snapshot-id": head.snapshot_id,
                    "manifest-list": manifest_list or update["snapshot"]["manifest-list"],
                    **changes,
                }
            elif update["action"] == "set-snapshot-ref":
                update["snapshot-id"] = 2**41 + 1
        for requirement in body["requirements"]:
            if requirement["type"] == "assert-ref-snapshot-id":
                requirement["snapshot-id"] = head.snapshot_id
        return self.post("main", "mine", body)

    def post(self, namespace: str, table: str, body) -> tuple[int, str]:
        uri = f"{self.served.catalog_uri}/v1/lake/namespaces/{namespace}/tables/{table}"
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = urllib3.request("POST", uri.rstrip("/"), body=sent, timeout=60)
        found = json.loads(answer.data)
        return answer.status, found.get("error", {}).get("message", "")

    def append(self, *locations: str) -> None:
        """Append the own file under other locations."""
        transaction = self.mine.refresh().transaction()
        with transaction.update_snapshot().fast_append() as update:
            for location in locations:
                file = copy(self.file)
                data = [location if one == self.file.file_path else one for one in self.file._data]
                object.__setattr__(file, "_data", data)
                update.append_data_file(file)
        transaction.commit_transaction()


def with_manifest(attack, path: object) -> str:
    """A manifest list that names a manifest at this path."""
    [found] = [u["snapshot"] for u in attack.body["updates"] if u["action"] == "add-snapshot"]
    reader = fastavro.reader(io.BytesIO(attack.read(found["manifest-list"])))
    records = [{**record, "manifest_path": path} for record in reader]
    stream = io.BytesIO()
    schema = json.loads(reader.metadata["avro.schema"])
    if not isinstance(path, str):
        for field in schema["fields"]:
            if field["name"] == "manifest_path":
                field["type"] = ["null", "long"]
    fastavro.writer(stream, fastavro.parse_schema(schema), records)
    return attack.write("list.avro", stream.getvalue())
