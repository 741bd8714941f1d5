"""What several measurements share: lakes, peers and clients."""
