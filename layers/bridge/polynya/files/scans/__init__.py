"""The files of scans that the server plans, found without any manifest."""
