"""What things cost, beside the same table written as real Iceberg, as ratios in one run."""
