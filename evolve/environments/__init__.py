"""The environments: one folder each. Importing this package has no effect."""
