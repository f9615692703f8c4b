"""What writes candidates: each kind edits harness files in a workspace and states one hypothesis.

A proposer sees the workspace and the evidence folder of its assignment, nothing else.
"""
