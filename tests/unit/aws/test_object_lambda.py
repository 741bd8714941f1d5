"""Clients of an Object Lambda alias, with a real handler and a real S3 (moto) behind it."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer
from pyarrow.fs import S3FileSystem

from tests.aws.stand_in import StandIn

REGION = "us-east-1"
BUCKET = "behind-the-alias"  # all buckets of moto are shared in the process
ALIAS = "polynya-1a4n8yjrb3kda96f67zwrwiiuse1a--ol-s3"
VIRTUAL = bytes(range(256)) * 400
ETAG = '"virtual-1"'
WRITTEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REAL_KEY = "données/100% réel/a+b=c.parquet"
REAL = b"real bytes " * 1000

LISTING = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>alias</Name>
<Prefix>v/</Prefix><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>
<Contents><Key>v/only-here</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>
<ETag>"x"</ETag><Size>5</Size><StorageClass>STANDARD</StorageClass></Contents>
</ListBucketResult>"""


class Handler:
    """A small functions/object_lambda: keys below `v/` are virtual, others are passed on."""

    def __init__(self) -> None:
        self.events: list[dict] = []
        self.threads: set[int] = set()
        self.s3 = None

    def __call__(self, event, context):
        self.events.append(event)
        self.threads.add(threading.get_ident())
        key = urlsplit(event["userRequest"]["url"]).path[1:]
        if "getObjectContext" in event:
            context = event["getObjectContext"]
            names = {
                "RequestRoute": context["outputRoute"],
                "RequestToken": context["outputToken"],
            }
            return GETS.get(key, pass_on)(self.s3, names, event)
        if "headObjectContext" in event:
            return HEADS.get(key, {"statusCode": 404, "errorCode": "NoSuchKey"})
        return {"statusCode": 200, "listResultXml": LISTING}


def pass_on(s3, names, event):
    url = event["getObjectContext"]["inputS3Url"]
    signed = parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"][0].split(";")
    headers = {name.lower(): value for name, value in event["userRequest"]["headers"].items()}
    wanted = {name: headers[name] for name in signed if name != "host"}
    found = urllib3.request("GET", url, headers=wanted)
    s3.write_get_object_response(**names, StatusCode=found.status, Body=found.data)


def virtual(s3, names, event):
    answer = {"ETag": ETAG, "LastModified": WRITTEN, "AcceptRanges": "bytes"}
    answer |= {"ContentType": "avro/binary", "Metadata": {"snapshot": "7"}}
    # The header names are as the client wrote them: boto3 sends `Range`, pyarrow `range`.
    headers = {name.lower(): value for name, value in event["userRequest"]["headers"].items()}
    wanted = headers.get("range", "")
    if match := re.fullmatch(r"bytes=(\d+)-(\d+)", wanted):
        first, last = int(match[1]), min(int(match[2]), len(VIRTUAL) - 1)
        body = VIRTUAL[first : last + 1]
        content_range = f"bytes {first}-{last}/{len(VIRTUAL)}"
        answer |= {"StatusCode": 206, "ContentRange": content_range}
    else:
        body = VIRTUAL
    s3.write_get_object_response(**names, **answer, Body=body, ContentLength=len(body))


def missing(s3, names, event):
    s3.write_get_object_response(
        **names,
        StatusCode=404,
        ErrorCode="NoSuchKey",
        ErrorMessage="no <such> snapshot",
        ContentType="avro/binary",
    )


def busy(s3, names, event):
    s3.write_get_object_response(
        **names, StatusCode=503, ErrorCode="SlowDown", ErrorMessage="later"
    )


def twice(s3, names, event):
    s3.write_get_object_response(**names, Body=b"first")
    with pytest.raises(ClientError, match="InvalidToken") as caught:
        s3.write_get_object_response(**names, Body=b"second")
    TWICE.append(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])


def fails_afterwards(s3, names, event):
    s3.write_get_object_response(**names, Body=b"written in time")
    raise ValueError("too late")


def fails(s3, names, event):
    raise ValueError("before anything is written")


def silent(s3, names, event):
    return {"statusCode": 200}  # not how a GET is answered


def wrong(s3, names, event):
    for arguments in WRONG:
        with pytest.raises(ClientError, match="ValidationError"):
            s3.write_get_object_response(**names, **arguments)
    s3.write_get_object_response(**names, Body=b"right")


TWICE: list[int] = []
WRONG = [
    {"StatusCode": 200, "ErrorCode": "NoSuchKey"},
    {"StatusCode": 404, "ErrorCode": "NoSuchKey", "Body": b"a body"},
    {"StatusCode": 404, "ErrorCode": "no_such_key"},
    {"StatusCode": 418},
]
GETS = {
    "v/file.avro": virtual,
    "v/missing": missing,
    "v/busy": busy,
    "v/twice": twice,
    "v/fails-afterwards": fails_afterwards,
    "v/fails": fails,
    "v/silent": silent,
    "v/wrong": wrong,
}
HEADS = {
    "v/file.avro": {
        "statusCode": 200,
        "headers": {
            "Content-Length": len(VIRTUAL),
            "ETag": ETAG,
            "Last-Modified": "Fri, 02 Jan 2026 03:04:05 GMT",
            "Accept-Ranges": "bytes",
            "x-amz-meta-snapshot": "7",
        },
    },
    "v/no-length": {"statusCode": 200, "headers": {"ETag": ETAG}},
    "v/nothing": None,
}


def client(endpoint: str):
    config = Config(
        inject_host_prefix=False, retries={"max_attempts": 1}, s3={"addressing_style": "path"}
    )
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="anybody",
        aws_secret_access_key="anything",
        config=config,
    )


@pytest.fixture(scope="module")
def aws():
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    behind = "http://{}:{}".format(*moto.get_host_and_port())
    real = client(behind)
    real.create_bucket(Bucket=BUCKET)
    real.put_object(Bucket=BUCKET, Key=REAL_KEY, Body=REAL)
    handler = Handler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "ours")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
        stand_in = StandIn(alias=ALIAS, supporting_bucket=BUCKET, s3_endpoint=behind, region=REGION)
        with stand_in:
            handler.s3 = client(stand_in.s3_uri)
            stand_in.start(lambda event, context: None, handler)
            s3 = client(stand_in.s3_uri)
            yield SimpleNamespace(s3=s3, uri=stand_in.s3_uri, behind=behind, handler=handler)
    moto.stop()


def get(aws, key: str, **arguments):
    return aws.s3.get_object(Bucket=ALIAS, Key=key, **arguments)


def test_a_whole_get_returns_what_the_function_wrote(aws):
    found = get(aws, "v/file.avro")
    assert found["Body"].read() == VIRTUAL
    assert (found["ETag"], found["LastModified"], found["AcceptRanges"]) == (ETAG, WRITTEN, "bytes")
    assert (found["ContentType"], found["Metadata"]) == ("avro/binary", {"snapshot": "7"})
    assert found["ContentLength"] == len(VIRTUAL)


def test_a_range_returns_what_the_function_wrote(aws):
    found = get(aws, "v/file.avro", Range="bytes=10-19")
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert (found["Body"].read(), found["ETag"]) == (VIRTUAL[10:20], ETAG)
    assert found["ContentRange"] == f"bytes 10-19/{len(VIRTUAL)}"


def test_the_event_of_a_get_is_as_documented(aws):
    get(aws, "v/file.avro", Range="bytes=0-1")
    event = aws.handler.events[-1]
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
    assert set(event) == {
        "xAmzRequestId",
        "getObjectContext",
        "configuration",
        "userRequest",
        "userIdentity",
        "protocolVersion",
    }
    assert set(event["getObjectContext"]) == {"inputS3Url", "outputRoute", "outputToken"}
    assert set(event["configuration"]) == {
        "accessPointArn",
        "supportingAccessPointArn",
        "payload",
    }
    assert event["protocolVersion"] == "1.00"
    headers = event["userRequest"]["headers"]
    assert headers["Range"] == "bytes=0-1"
    assert headers["Accept-Encoding"] == "identity"
    assert not {"authorization", "x-amz-date"} & {name.lower() for name in headers}


@pytest.mark.parametrize(
    "method, context", [("HEAD", "headObjectContext"), ("LIST", "listObjectsV2Context")]
)
def test_the_context_of_head_and_list_holds_only_the_url(aws, method, context):
    if method == "HEAD":
        aws.s3.head_object(Bucket=ALIAS, Key="v/file.avro")
    else:
        aws.s3.list_objects_v2(Bucket=ALIAS, Prefix="v/")
    event = aws.handler.events[-1]
    assert set(event[context]) == {"inputS3Url"}
    assert "getObjectContext" not in event


def test_the_input_url_reads_the_real_object_and_has_no_range(aws):
    with pytest.raises(ClientError):
        get(aws, "gone", Range="bytes=0-1", PartNumber=1)
    url = urlsplit(aws.handler.events[-1]["getObjectContext"]["inputS3Url"])
    query = parse_qs(url.query)
    assert f"{url.scheme}://{url.netloc}{url.path}" == f"{aws.behind}/{BUCKET}/gone"
    assert not {"range", "partnumber"} & {name.lower() for name in query}
    # boto3 sends x-amz-checksum-mode; S3 signs it into the URL (aws/aws-sdk-js-v3#7147).
    assert query["X-Amz-SignedHeaders"] == ["host;x-amz-checksum-mode"]
    assert {"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Expires"} <= set(query)


def test_the_user_url_is_decoded_and_has_no_signature(aws):
    arguments = {"Bucket": ALIAS, "Key": REAL_KEY, "VersionId": "null"}
    urllib3.request("GET", aws.s3.generate_presigned_url("get_object", arguments))
    url = aws.handler.events[-1]["userRequest"]["url"]
    assert url.endswith(f".amazonaws.com/{REAL_KEY}?versionId=null")


def test_the_function_passes_on_a_real_key(aws):
    assert get(aws, REAL_KEY)["Body"].read() == REAL


def test_a_request_to_another_bucket_calls_no_function(aws):
    count = len(aws.handler.events)
    assert aws.s3.get_object(Bucket=BUCKET, Key=REAL_KEY)["Body"].read() == REAL
    assert len(aws.handler.events) == count


def test_an_error_is_s3_xml(aws):
    answer = urllib3.request("GET", f"{aws.uri}/{ALIAS}/v/missing")
    document = ElementTree.fromstring(answer.data)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/xml")
    assert document.tag == "Error"
    assert document.findtext("Code") == "NoSuchKey"
    assert document.findtext("Message") == "no <such> snapshot"


@pytest.mark.parametrize(
    "key, code, status", [("missing", "NoSuchKey", 404), ("busy", "SlowDown", 503)]
)
def test_boto3_recognises_the_error(aws, key, code, status):
    with pytest.raises(ClientError) as caught:
        get(aws, f"v/{key}")
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


@pytest.mark.parametrize("key", ["silent", "fails"])
def test_a_get_without_an_answer_is_a_500(aws, key):
    answer = urllib3.request("GET", f"{aws.uri}/{ALIAS}/v/{key}")
    assert answer.status == 500
    assert ElementTree.fromstring(answer.data).findtext("Code") == "LambdaResponseNotReceived"


def test_a_token_is_valid_for_one_answer(aws):
    assert get(aws, "v/twice")["Body"].read() == b"first"
    assert TWICE == [400]


def test_a_token_is_invalid_after_its_get(aws):
    get(aws, "v/file.avro")
    context = aws.handler.events[-1]["getObjectContext"]
    with pytest.raises(ClientError) as caught:
        aws.s3.write_get_object_response(
            RequestRoute=context["outputRoute"], RequestToken=context["outputToken"], Body=b"late"
        )
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_an_answer_written_before_an_exception_is_sent(aws):
    assert get(aws, "v/fails-afterwards")["Body"].read() == b"written in time"


def test_an_invalid_answer_of_the_function_is_refused(aws):
    assert get(aws, "v/wrong")["Body"].read() == b"right"


def test_head_returns_what_the_function_returned(aws):
    head = aws.s3.head_object(Bucket=ALIAS, Key="v/file.avro")
    assert (head["ContentLength"], head["ETag"], head["LastModified"]) == (
        len(VIRTUAL),
        ETAG,
        WRITTEN,
    )
    assert head["Metadata"] == {"snapshot": "7"}


HEAD_FAULTS = [("v/unknown", "404"), ("v/no-length", "400"), ("v/nothing", "400")]


@pytest.mark.parametrize("key, status", HEAD_FAULTS)
def test_head_without_a_valid_answer_fails(aws, key, status):
    with pytest.raises(ClientError, match=status):
        aws.s3.head_object(Bucket=ALIAS, Key=key)


def test_list_returns_what_the_function_returned(aws):
    found = aws.s3.list_objects_v2(Bucket=ALIAS, Prefix="v/")
    assert [(item["Key"], item["Size"]) for item in found["Contents"]] == [("v/only-here", 5)]


def test_other_reads_of_the_alias_read_the_real_bucket(aws):
    aws.s3.head_bucket(Bucket=ALIAS)
    aws.s3.get_bucket_location(Bucket=ALIAS)
    assert [item["Key"] for item in aws.s3.list_objects(Bucket=ALIAS)["Contents"]] == [REAL_KEY]


def test_a_write_to_the_alias_is_refused(aws):
    with pytest.raises(ClientError, match="AccessDenied"):
        aws.s3.put_object(Bucket=ALIAS, Key="v/file.avro", Body=b"x")


def test_pyarrow_reads_a_virtual_file_by_ranges(aws):
    files = S3FileSystem(
        access_key="x",
        secret_key="y",
        region=REGION,
        scheme="http",
        endpoint_override=aws.uri.removeprefix("http://"),
    )
    with files.open_input_file(f"{ALIAS}/v/file.avro") as file:
        assert file.size() == len(VIRTUAL)
        assert file.read_at(100, 5000) == VIRTUAL[5000:5100]
    with pytest.raises(FileNotFoundError):
        files.open_input_file(f"{ALIAS}/v/unknown")


def test_eight_threads_receive_their_own_answers(aws):
    def read(number: int) -> bool:
        first = number * 7
        body = get(aws, "v/file.avro", Range=f"bytes={first}-{first + 99}")["Body"].read()
        return body == VIRTUAL[first : first + 100]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(64)))
    assert len(aws.handler.threads) == 1


def test_stop_waits_for_a_running_get(aws):
    began = threading.Event()
    answers = []

    def slow(event, context):
        began.set()
        time.sleep(0.3)
        names = event["getObjectContext"]
        s3.write_get_object_response(
            RequestRoute=names["outputRoute"], RequestToken=names["outputToken"], Body=b"whole"
        )

    with StandIn(
        alias=ALIAS, supporting_bucket=BUCKET, s3_endpoint=aws.behind, region=REGION
    ) as stand_in:
        s3, url = client(stand_in.s3_uri), f"{stand_in.s3_uri}/{ALIAS}/v/file.avro"
        stand_in.start(lambda event, context: None, slow)
        reader = threading.Thread(target=lambda: answers.append(urllib3.request("GET", url)))
        reader.start()
        assert began.wait(5)
    reader.join()
    assert answers[0].data == b"whole"


CHUNKED = (
    b"5;chunk-signature=ab\r\nhello\r\n6\r\n world\r\n0;chunk-signature=cd\r\nx-amz-t: 1\r\n\r\n"
)
ENCODINGS = [
    ({"Content-Encoding": "aws-chunked", "X-Amz-Decoded-Content-Length": "11"}, False),
    ({"X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}, False),
    ({"X-Amz-Content-SHA256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}, True),
]


@pytest.mark.parametrize("headers, chunked", ENCODINGS)
def test_a_chunked_answer_is_joined(aws, headers, chunked):
    def write(s3, names, event):
        fields = {
            "x-amz-request-route": names["RequestRoute"],
            "x-amz-request-token": names["RequestToken"],
            "x-amz-fwd-header-Content-Length": "999",
            **headers,
        }
        body = iter([CHUNKED[:9], CHUNKED[9:]]) if chunked else CHUNKED
        url = f"{aws.uri}/WriteGetObjectResponse"
        answer = urllib3.request("POST", url, headers=fields, body=body)
        assert answer.status == 200

    GETS["v/chunked"] = write
    assert get(aws, "v/chunked")["Body"].read() == b"hello world"
