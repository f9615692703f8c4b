"""What of this machine's Python goes into a sandbox: an interpreter, and the few modules of `evolve harness check`.

An installed environment brings its tasks with it, the held-out ones too. So neither the package nor `site-packages`
is ever shown as a whole.
"""

from __future__ import annotations

import os
import shlex
import site
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent
OF_THE_PACKAGE = ("__init__.py", "canaries.py", "errors.py", "records", "rules.py", "harness")
OF_OTHERS = ("annotated_types", "orjson", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection")
"""What `evolve.harness.check` imports, directly or not; a test runs the check with no more than these."""

ISOLATED = "-ISB"  # no variables, no site-packages, no byte code written


def interpreter() -> Path:
    """Return the interpreter itself, not a link to it."""
    return Path(os.path.realpath(sys.executable))


def interpreter_places() -> tuple[Path, ...]:
    """Return what the interpreter needs: itself, the standard library, shared libraries beside it."""
    prefix = Path(sys.base_prefix)
    found = (interpreter(), *(prefix / name for name in ("lib", "lib64", "Python", "Resources")))
    return tuple(place for place in found if place.exists() and not place.is_relative_to("/usr"))


def package_folders() -> tuple[Path, ...]:
    """Return every folder that holds installed packages, and those of this package that hold tasks and recordings."""
    schemes = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    own = {PACKAGE / "environments", PACKAGE / "_resources"}
    base = {Path(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")}
    return tuple(sorted({*map(Path, {*schemes, *site.getsitepackages(), site.getusersitepackages()}), *own, *base}))


def check_places() -> tuple[Path, ...]:
    """Return the files and folders that the check imports from, and the scripts that run inside."""
    own = [PACKAGE / name for name in OF_THE_PACKAGE]
    return (*own, SCRIPTS / "entrance.py", SCRIPTS / "check_program.py", *_modules())


def write_evolve_program(folder: Path) -> None:
    """Write a program `evolve` that checks a harness, for a PATH inside."""
    folder.mkdir(parents=True, exist_ok=True)
    folders = dict.fromkeys(str(path.parent) for path in (PACKAGE, *_modules()))
    command = [str(interpreter()), ISOLATED, str(SCRIPTS / "check_program.py"), os.pathsep.join(folders)]
    program = folder / "evolve"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
    program.chmod(0o755)


def _modules() -> list[Path]:
    origins = [spec.origin for name in OF_OTHERS if (spec := find_spec(name)) is not None]
    files = [Path(origin) for origin in origins if origin]
    return [file.parent if file.name == "__init__.py" else file for file in files]
