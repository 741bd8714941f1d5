"""Measures what operations cost, as ratios to the same table as real Iceberg in the same run."""
