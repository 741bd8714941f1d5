"""The target: Iceberg's records, JSON, Avro and Parquet bytes, in the words of its specification."""
