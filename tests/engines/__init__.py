"""Engines that are too large for CI: Trino and Flink read the test lakes, and write to a lake."""
