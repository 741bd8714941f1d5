"""Bodies of the requests that change tables, and the Avro files to which they refer."""
