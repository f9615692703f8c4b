"""What the host may tell the zygote: six bytes each, and with those that start a worker its ends of two pipes."""

import enum
import struct

ORDER = struct.Struct("!BBI")  # kind, layers, number of the worker


class Kind(enum.IntEnum):
    """What to do with the worker of that number."""

    FORK = 1
    KILL = 2
    SELF_TEST = 3


class Layers(enum.IntFlag):
    """Which kernel defences a worker puts on. Limits on resources are always put on."""

    NONE = 0
    LANDLOCK = 1
    SECCOMP = 2
    ALL = LANDLOCK | SECCOMP


READY = b"R"
"""First byte of the zygote when it can fork; anything else is the text of why it cannot."""
