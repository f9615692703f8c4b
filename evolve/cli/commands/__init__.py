"""One file per command. Each reads its arguments, calls the part that does the work, and prints what came back."""
