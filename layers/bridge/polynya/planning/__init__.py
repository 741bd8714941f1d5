"""The answers to the REST operations that plan scans."""
