"""Rule code that means harm, as the bodies of rules. What got through says REACHED, or the canary, which begins so.

`view.text` names what to attack. All of it walks around the checks made in the language: no odd word or import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

REACHED = "REACHED"

HEAD = "from evolve.rules import *\n"
ESCAPE = """
import re
sys = re.enum.sys
os = sys.modules["os"]
"""

Target = Literal["file", "memory", "process", "port", "nothing"]
"""What an attack is told: a path; a process and an address in it; a process; a port of this machine; nothing."""

READS: Mapping[str, str] = {
    "open by path": "return Block(sys.modules['builtins'].open(view.text).read())",
    "io": "return Block(sys.modules['io'].FileIO(view.text).readall().decode())",
    "os": "return Block(os.read(os.open(view.text, 0), 99).decode())",
    "stat": "return Block('REACHED ' + str(os.stat(view.text).st_size))",
    "up and down": "return Block(sys.modules['builtins'].open('/proc/self/cwd/../' + view.text).read())",
    "popen": "return Block(os.popen('cat ' + view.text).read())",
    "system": "return Block('REACHED') if os.system('true') == 0 else PASS",
    "exec": "os.execv('/bin/sh', ['sh', '-c', 'sleep 9'])",
    "raw system call": """
libc = sys.modules["ctypes"].CDLL(None, use_errno=True)
opened = libc.open(view.text.encode(), 0)
return Block("REACHED") if opened >= 0 else 1 / 0
""",
}

WRITES = """
with sys.modules["builtins"].open(view.text + ".new", "w") as file:
    file.write("x")
return Block("REACHED")
"""

MEMORY = """
process, address = view.text.split()
with sys.modules["builtins"].open("/proc/" + process + "/mem", "rb", 0) as memory_of_host:
    memory_of_host.seek(int(address))
    return Block(memory_of_host.read(12).decode())
"""

VARIABLES = """
with sys.modules["builtins"].open("/proc/" + view.text + "/environ", "rb") as variables:
    return Block("REACHED" if b"PATH=" in variables.read() else "nothing")
"""

SIGNAL = "os.kill(int(view.text), 0)\nreturn Block('REACHED')"

SOCKETS: Mapping[str, str] = {
    "TCP": "s = m.socket(); s.connect(('127.0.0.1', int(view.text)))",
    "UDP": "s = m.socket(m.AF_INET, m.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', 9))",
    "listening": "s = m.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
    "unix path": "s = m.socket(m.AF_UNIX); s.connect('/nowhere')",
    "unix abstract": "s = m.socket(m.AF_UNIX); s.bind(chr(0) + 'evolve-test-' + str(os.getpid()))",
    "socket pair": "m.socketpair()",
}

FORKS: Mapping[str, str] = {
    "fork": "if os.fork() == 0:\n    os._exit(0)\nreturn Block('REACHED')",
    "thread": "sys.modules['_thread'].start_new_thread(lambda: None, ()); return Block('REACHED')",
}

EXECUTABLE = "sys.modules['mmap'].mmap(-1, 4096, prot=7); return Block('REACHED')"

TWO_GIB = "sys.modules['mmap'].mmap(-1, 2 << 30)\nreturn Block('REACHED')"

LOOP = """
for _ in range(3 * 10**7):
    pass
return Block("REACHED")
"""

DESCRIPTORS = """
wrote = []
for descriptor in range(65):
    if descriptor != int(view.text):
        try:
            os.write(descriptor, b"REACHED")
            wrote.append(descriptor)
        except OSError:
            pass
return Block(str(wrote))
"""


def socket_attack(name: str) -> str:
    """Return the body of an attack by socket; an answer of the network, too, means that it was reached."""
    tried = f"try:\n    {SOCKETS[name]}\nexcept FileNotFoundError:\n    pass"
    return f'm = sys.modules["socket"]\n{tried}\nreturn Block("REACHED")'


class RuleAttack(NamedTuple):
    """One attack that needs no more than a rule."""

    case: str
    attack: str
    body: str
    target: Target = "nothing"


ATTACKS = (
    *(RuleAttack("01.files", f"reads a file: {name}", READS[name], "file") for name in ("open by path", "io", "os")),
    *(RuleAttack("01.files", f"reads a file: {name}", READS[name], "file") for name in ("up and down", "stat")),
    RuleAttack("01.files", "writes a file", WRITES, "file"),
    RuleAttack("02.builtins", "starts a shell", READS["popen"], "file"),
    RuleAttack("02.builtins", "opens a file by a raw system call", READS["raw system call"], "file"),
    RuleAttack("03.memory", "reads evolve's memory", MEMORY, "memory"),
    RuleAttack("03.memory", "reads evolve's variables", VARIABLES, "process"),
    RuleAttack("03.memory", "signals evolve", SIGNAL, "process"),
    *(RuleAttack("05.sockets", f"opens a socket: {name}", socket_attack(name), "port") for name in SOCKETS),
    RuleAttack("06.processes", "starts a process", FORKS["fork"]),
    RuleAttack("06.processes", "starts a thread", FORKS["thread"]),
    RuleAttack("06.processes", "maps machine code", EXECUTABLE),
    RuleAttack("07.waste", "takes 2 GiB of memory", TWO_GIB),
    RuleAttack("08.loops", "loops longer than a rule may", LOOP),
)


def source(body: str, *, more: str = "", top: str = ESCAPE, strength: str = "force") -> str:
    """Return an action.py with rule `action.x` made of a body, and `more` after it."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    head = f'@action_rule(id="action.x", strength="{strength}", evidence="e")\ndef x(view, memory):\n'
    return f"{HEAD}{top}\n{head}{lines}\n{more}"
