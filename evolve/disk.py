"""Writing whole or not at all, and what a disk that refuses means to a user: a sentence for each kind of refusal."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile

FULL = "the disk is full; free some space and run again, what was recorded is kept"

MENDING = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: "the disk quota is used up; free some space and run again, what was recorded is kept",
    errno.EFBIG: "a file reached the allowed size; raise the limit and run again, what was recorded is kept",
    errno.EACCES: "permission denied; change the permissions, or work as another user",
    errno.EPERM: "permission denied; change the permissions, or work as another user",
    errno.EROFS: "the file system is read-only; work in another folder",
    errno.EIO: "the disk does not read or write; check it, then run again",
}


def in_words(error: OSError) -> str:
    """Return what a failed call on a file means, and what mends it where that is known."""
    return MENDING.get(error.errno or 0) or f"{error.strerror or error}; check the path and the disk"


def append_whole(descriptor: int, content: bytes, *, end: int) -> None:
    """Write at the end of a file, all of it or nothing: what the disk took of it is taken back.

    Args:
        end: the size of the file before.

    Raises:
        OSError: the disk did not take it.
    """
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise


def why_unwritable(folder: Path) -> OSError | None:
    """Return the error that writing a small file in a folder ends with; None where it can be written.

    For programs of others, which tell of a full disk in words only.
    """
    try:
        with TemporaryFile(dir=folder) as stream:  # nameless, so that no kill leaves one
            stream.write(bytes(4096))
    except OSError as error:
        return error
    return None


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all; a device or a pipe is written as it is.

    Raises:
        OSError: it cannot be written; what was there is untouched.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def in_the_way(root: Path, path: str) -> str:
    """Return the file or link at a path or in place of one of its folders; "" where a file can be written."""
    folders = [str(parent) for parent in PurePosixPath(path).parents][-2::-1]
    for folder in folders:
        if os.path.lexists(root / folder) and (not (root / folder).is_dir() or (root / folder).is_symlink()):
            return folder
    return path if os.path.lexists(root / path) else ""
