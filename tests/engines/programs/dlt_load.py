"""Loads one batch with dlt, which runs this file: FOLDER DISPOSITION [ID TEXT]...

As dlt's documentation says, a load that failed is run again, which loads the package that is left.
"""

import sys

import dlt

folder, disposition, *values = sys.argv[1:]
rows = [{"id": int(id_), "s": s} for id_, s in zip(values[::2], values[1::2], strict=True)]
pipeline = dlt.pipeline("t", pipelines_dir=folder, destination="filesystem", dataset_name="main")
resource = dlt.resource(
    rows,
    name="t",
    primary_key="id",
    write_disposition=(
        {"disposition": "merge", "strategy": "upsert"} if disposition == "merge" else disposition
    ),
    table_format="iceberg",
)
pipeline.run(resource)
