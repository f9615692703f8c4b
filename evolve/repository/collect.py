"""Reads back the copy of a harness that a proposer edited. It opens files and nothing else: no git, no links.

What is not a plain, small UTF-8 file is refused with a reason; a refusal is for the gate to act on.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from evolve.errors import RepositoryError

MOST_FILES = 64
MOST_BYTES = 256 * 1024
MOST_BYTES_IN_ALL = 4 * 1024 * 1024
_MOST_ENTRIES = 2000
_DEEPEST = 8
_PASSED_OVER = (".git", "__pycache__")  # not part of a harness, and no sign of bad faith


class Refusal(NamedTuple):
    """A path that was not taken, and why."""

    path: str
    reason: str


class Collected(NamedTuple):
    """What was found: content by path relative to the folder, and what was refused."""

    files: dict[str, bytes]
    refused: list[Refusal]


class _Found(NamedTuple):
    """One entry of the folder: its bytes, or why it has none."""

    path: str
    content: bytes
    reason: str = ""


def collect(folder: Path) -> Collected:
    """Read the regular files under `folder`; never follow a link, never run anything.

    Raises:
        RepositoryError: `folder` itself is missing or is a link.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise RepositoryError(f"{folder} is no folder; the edited copy was removed or replaced")
    found = sorted(_take(_walk(folder)))
    spellings = _spellings(entry.path for entry in found)
    files: dict[str, bytes] = {}
    refused: list[Refusal] = []
    for path, content, reason in found:
        if not reason and any(len(spellings[_folded(part)]) > 1 for part in _prefixes(path)):
            reason = "its name differs from another's only in case or accents"
        if not reason and len(files) >= MOST_FILES:
            reason = f"more than {MOST_FILES} files"
        if reason:
            refused.append(Refusal(path, reason))
        else:
            files[path] = content
    return Collected(files, refused)


def _take(entries: Iterator[_Found]) -> Iterator[_Found]:
    """Stop at a number of entries, or of bytes, that no harness has."""
    size = 0
    for number, entry in enumerate(entries):
        size += len(entry.content)
        if number >= _MOST_ENTRIES:
            yield _Found(".", b"", f"more than {_MOST_ENTRIES} entries; the rest was not read")
            return
        if size > MOST_BYTES_IN_ALL:
            yield _Found(".", b"", f"more than {MOST_BYTES_IN_ALL // 1024**2} MB in all; the rest was not read")
            return
        yield entry


def _walk(root: Path) -> Iterator[_Found]:
    trouble: list[_Found] = []

    def note(error: OSError) -> None:
        path = os.path.relpath(error.filename or ".", root) if isinstance(error.filename, str) else "."
        trouble.append(_Found(_printable(path), b"", f"the folder cannot be read: {error.strerror}"))

    walk = os.fwalk(root, onerror=note, follow_symlinks=False)
    for number, (place, folders, files, descriptor) in enumerate(walk):
        if number >= _MOST_ENTRIES:
            yield _Found(".", b"", f"more than {_MOST_ENTRIES} folders; the rest was not read")
            break
        here = os.path.relpath(place, root)
        depth = 0 if here == "." else here.count(os.sep) + 1
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER)
        for name in [*folders, *sorted(name for name in files if name not in _PASSED_OVER)]:
            found = _read(descriptor, name, name if here == "." else f"{here}/{name}")
            if found:
                yield found
                folders[:] = [folder for folder in folders if folder != name]
        if depth >= _DEEPEST and folders:
            yield _Found(_printable(here), b"", f"folders deeper than {_DEEPEST}")
            folders.clear()
    yield from trouble


def _read(folder: int, name: str, path: str) -> _Found | None:
    """Read one entry of an open folder; None for a folder that may be walked into."""
    reason = _bad_name(name)
    if reason:
        return _Found(_printable(path), b"", reason)
    try:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(kind.st_mode):
            return None
        if not stat.S_ISREG(kind.st_mode):
            return _Found(path, b"", f"a {_kind_of(kind.st_mode)}, not a regular file")
        # the entry may have been swapped since: what is opened is looked at again, and never waited for
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        return _Found(path, b"", f"cannot be read: {error.strerror}")
    with os.fdopen(descriptor, "rb") as stream:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return _Found(path, b"", f"a {_kind_of(opened.st_mode)}, not a regular file")
        if opened.st_nlink > 1:
            return _Found(path, b"", "a hard link to another file")
        return _checked(path, stream.read(MOST_BYTES + 1))


def _checked(path: str, content: bytes) -> _Found:
    if len(content) > MOST_BYTES:
        return _Found(path, b"", f"larger than {MOST_BYTES // 1024} KB")
    if b"\0" in content:
        return _Found(path, b"", "contains a NUL byte")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return _Found(path, b"", "not UTF-8 text")
    return _Found(path, content)


def _bad_name(name: str) -> str:
    if name.casefold() in _PASSED_OVER:
        return "a name kept for git or Python"
    if "\\" in name or not name.isprintable():
        return "a name with characters that not every system can store"
    return ""


def _prefixes(path: str) -> list[str]:
    """Return the path and the folders above it."""
    parts = path.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


def _spellings(paths: Iterable[str]) -> dict[str, set[str]]:
    """Group paths and folders that a file system blind to case or accents would take for one."""
    spellings: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for prefix in _prefixes(path):
            spellings[_folded(prefix)].add(prefix)
    return spellings


def _printable(path: str) -> str:
    """Return a path that drives no terminal and has a UTF-8 form."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _kind_of(mode: int) -> str:
    kinds = {stat.S_IFLNK: "symbolic link", stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "device")
