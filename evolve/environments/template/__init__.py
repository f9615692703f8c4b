"""The start of a new environment: a small complete one, ready to be changed. `evolve env new NAME` writes it."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path

from evolve.errors import UserError
from evolve.prompts import render

FOLDER = Path(__file__).parent
NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")


def template_files(name: str) -> dict[str, str]:
    """Return the files of a new environment by path: the environment, how it is installed, its tests.

    Raises:
        UserError: the name cannot be that of a module.
    """
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name for an environment: 2 to 40 lower-case letters, digits and _, a letter first"
        )
    if keyword.iskeyword(name) or _is_module(name):
        raise UserError(f"{name!r} is a word or a module of Python already; name the environment otherwise")
    title = "".join(part.capitalize() for part in name.split("_"))
    files = {f"{name}.py": "environment.py.j2", "pyproject.toml": "pyproject.toml.j2"}
    files[f"test_{name}.py"] = "test_environment.py.j2"
    return {path: render(source, templates=FOLDER, name=name, title=title) for path, source in files.items()}


def _is_module(name: str) -> bool:
    """Return whether a module of that name can be imported; a bare folder of that name is none."""
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None


def start_environment(name: str, folder: Path) -> list[Path]:
    """Write the files of a new environment into a folder that holds none of them; return their paths.

    Raises:
        UserError: the name cannot be used, or one of the files is there already; nothing is written then.
    """
    files = template_files(name)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder")
    taken = sorted(path for path in files if (folder / path).exists())
    if taken:
        raise UserError(f"{folder} holds {taken[0]} already; choose another folder with --into, or remove it first")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            (folder / path).write_text(text, "utf-8")
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from error
    return [folder / path for path in sorted(files)]
