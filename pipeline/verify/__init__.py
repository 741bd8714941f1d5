"""The job `verify`: is a lake as its catalog says?"""
