"""The command `polynya`, and the stand-ins that it runs on one machine."""
