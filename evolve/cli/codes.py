"""The exit codes of the command line; errors bring their own (`evolve.errors`)."""

DONE, OUR_BUG, USAGE, INFRASTRUCTURE, INTERRUPTED = 0, 1, 2, 4, 130
