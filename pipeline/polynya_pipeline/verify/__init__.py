"""The job `verify`: checks that a lake agrees with its catalog."""
