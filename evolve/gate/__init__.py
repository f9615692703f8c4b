"""The gate: checks that cost nothing, then paired evidence, then a verdict."""
