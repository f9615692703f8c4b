"""A system-call filter that leaves a running interpreter alive and nothing else: no open, no socket, no clone.

What is not listed answers EPERM. A call under a foreign architecture or the x32 numbering kills the process.
"""

import ctypes
import errno
import platform
import struct
from functools import cache
from typing import NamedTuple

from evolve.harness.worker.child import libc

PROT_EXEC = 4
X32_BIT = 0x40000000
KILL, ALLOW, REFUSE = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM
LOAD, IF_EQUAL, IF_AT_LEAST, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
AT_NUMBER, AT_ARCHITECTURE, AT_THIRD_ARGUMENT = 0, 4, 32  # offsets in struct seccomp_data; low word, little endian
PR_SET_SECCOMP, MODE_FILTER = 22, 2
INSTRUCTION_BYTES = 8

Buffer = ctypes.Array[ctypes.c_char]


class Table(NamedTuple):
    """The system calls of one architecture: `free` ones pass, `unexecutable` ones pass without PROT_EXEC."""

    architecture: int
    has_x32: bool
    free: tuple[int, ...]
    unexecutable: tuple[int, ...]


# free: read write munmap brk mremap madvise futex rt_sigreturn rt_sigprocmask sigaltstack setitimer
#       restart_syscall exit exit_group; unexecutable: mmap mprotect
TABLES = {
    "x86_64": Table(0xC000003E, True, (0, 1, 11, 12, 25, 28, 202, 15, 14, 131, 38, 219, 60, 231), (9, 10)),
    "aarch64": Table(0xC00000B7, False, (63, 64, 215, 214, 216, 233, 98, 139, 135, 132, 103, 128, 93, 94), (222, 226)),
}


def instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Pack one struct sock_filter; the jumps count instructions to skip."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def program(table: Table) -> bytes:
    """Assemble the filter of an architecture."""
    code = [
        instruction(LOAD, AT_ARCHITECTURE),
        instruction(IF_EQUAL, table.architecture, if_true=1),
        instruction(RETURN, KILL),
        instruction(LOAD, AT_NUMBER),
    ]
    if table.has_x32:
        code += [instruction(IF_AT_LEAST, X32_BIT, if_false=1), instruction(RETURN, KILL)]
    for number in table.free:
        code += [instruction(IF_EQUAL, number, if_false=1), instruction(RETURN, ALLOW)]
    for number in table.unexecutable:
        code += [
            instruction(IF_EQUAL, number, if_false=4),
            instruction(LOAD, AT_THIRD_ARGUMENT),
            instruction(IF_ANY_BIT, PROT_EXEC, if_false=1),
            instruction(RETURN, REFUSE),
            instruction(RETURN, ALLOW),
        ]
    return b"".join([*code, instruction(RETURN, REFUSE)])


@cache
def filter_here() -> tuple[Buffer, Buffer]:
    """Return struct sock_fprog for this machine and the program that it points to, in memory that stays.

    Raises:
        OSError: the machine has no table here.
    """
    table = TABLES.get(platform.machine())
    if table is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {platform.machine()}")
    code = program(table)
    text = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // INSTRUCTION_BYTES, ctypes.addressof(text))
    return ctypes.create_string_buffer(header, len(header)), text


def install() -> None:
    """Put the filter on this process, for good. `no_new_privs` must be set.

    Raises:
        OSError: the machine has no table here, or the kernel refuses the filter.
    """
    header, _ = filter_here()
    refused = "the kernel refuses a seccomp filter"
    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.addressof(header), why=refused)
