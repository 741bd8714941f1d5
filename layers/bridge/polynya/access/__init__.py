"""The rights of callers to tables: policy, principals, vended credentials, authorized files."""
