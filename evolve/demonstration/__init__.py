"""The demo: its settings, and the whole way from a run to a report in one built-in environment."""
