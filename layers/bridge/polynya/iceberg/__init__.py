"""The target: records, JSON, Avro and Parquet bytes in the words of Iceberg's specification."""
