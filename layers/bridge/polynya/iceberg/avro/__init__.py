"""Manifest lists and manifests as Avro bytes."""
