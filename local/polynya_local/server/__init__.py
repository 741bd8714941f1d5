"""The server of the application: the catalog and the page at one port, S3 at the next one."""
