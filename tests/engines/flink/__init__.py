"""Flink in local mode, with jars from Maven."""
