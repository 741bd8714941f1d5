"""The program of Sling, and what its environment says of a catalog."""

import json
from pathlib import Path

from polynya_local.processes.serving import KEY_ID, REGION, SECRET, Bridge

FOLDER = Path(__file__).parents[3] / ".cache" / "engines" / "sling"
PROGRAM = FOLDER / "sling_linux_amd64" / "bin" / "sling-linux-amd64"


def environment(bridge: Bridge, home: str) -> dict[str, str]:
    """The environment in which the connection `ICE` is a catalog.

    Args:
        home: the folder of Sling's own files.
    """
    s3 = {
        "s3.endpoint": bridge.s3_endpoint,
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "s3.region": REGION,
        "s3.force-virtual-addressing": "false",
    }
    target = {
        "type": "iceberg",
        "catalog_type": "rest",
        "rest_uri": bridge.catalog_uri,
        "rest_warehouse": "lake",
        "rest_extra_props": json.dumps(s3),
        "s3_endpoint": bridge.s3_endpoint,
        "s3_access_key_id": KEY_ID,
        "s3_secret_access_key": SECRET,
        "s3_region": REGION,
    }
    return {
        "ICE": json.dumps(target),
        "SLING_HOME_DIR": home,
        "SLING_DISABLE_TELEMETRY": "TRUE",
    }
