"""Who may read which tables: policy, principals, vended credentials, authorized files."""
