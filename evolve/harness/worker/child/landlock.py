"""A Landlock domain with an empty list of paths: no file, no TCP port, no signal or abstract socket outward."""

import ctypes
import struct
from functools import cache

from evolve.harness.worker.child import libc

CREATE_RULESET, RESTRICT_SELF = 444, 446  # the same numbers on every architecture
ASK_VERSION = 1
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}  # ABI version -> how many rights on files it can take away
NETWORK_SINCE, SCOPES_SINCE = 4, 6
TWO_RIGHTS = 0b11  # bind and connect; abstract sockets and signals


def ruleset(version: int) -> bytes:
    """Return struct landlock_ruleset_attr that takes away all that the ABI version knows."""
    rights = (1 << max(count for since, count in FILE_RIGHTS.items() if since <= version)) - 1
    attributes = struct.pack("=Q", rights)
    if version >= NETWORK_SINCE:
        attributes += struct.pack("=Q", TWO_RIGHTS)
    if version >= SCOPES_SINCE:
        attributes += struct.pack("=Q", TWO_RIGHTS)
    return attributes


@cache
def attributes_here() -> ctypes.Array[ctypes.c_char]:
    """Return the struct for the kernel we are on, in memory that stays.

    Raises:
        OSError: the kernel has no Landlock.
    """
    content = ruleset(libc.system_call(CREATE_RULESET, 0, 0, ASK_VERSION, why="the kernel has no Landlock"))
    return ctypes.create_string_buffer(content, len(content))


def restrict() -> None:
    """Put the domain on this process, for good. `no_new_privs` must be set.

    Raises:
        OSError: the kernel has no Landlock or refuses.
    """
    attributes = attributes_here()
    refused = "the kernel refuses a Landlock domain"
    address = ctypes.addressof(attributes)
    descriptor = libc.system_call(CREATE_RULESET, address, ctypes.sizeof(attributes), why=refused)
    libc.system_call(RESTRICT_SELF, descriptor, why=refused)
