"""Turns failed episodes into patterns: signals, one label per failure, and signatures that several tasks share.

Reads episodes and tool schemas only. Nothing here asks a model, opens a file or knows a scorer's internals.
"""
