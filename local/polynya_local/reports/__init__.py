"""What `polynya doctor` and `polynya inspect` find out and show."""
