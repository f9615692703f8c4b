"""Attacks on evolve itself, each beside the same attack without the defence, which must succeed to count.

`evolve doctor --redteam` tries them on the user's machine; the tests try these and more. Nothing here changes anything
outside a temporary folder.
"""
