"""The harness: reading a folder of versioned files and running its four layers around a frozen model."""
