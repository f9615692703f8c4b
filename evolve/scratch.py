"""Private folders in the machine's place for temporary files, and the end of those that a killed evolve left there."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from evolve.errors import WorkspaceBusy
from evolve.lock import alone_in

YOUNG_S = 60.0
"""A folder younger than this may have been made a moment ago, and its lock not been taken yet."""


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    """Give a private folder; whatever an agent left in it goes with it, and so do those that a killed evolve left.

    It is locked for as long as it is used, so that nobody who shares the place takes it for one that was left.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError, WorkspaceBusy):  # it is in use, another process removes it too, or it is not ours
            _remove_if_left(left)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder, alone_in(Path(folder)):
        yield Path(folder).resolve()


def _remove_if_left(folder: Path) -> None:
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or time.time() - seen.st_mtime < YOUNG_S:
        return
    with alone_in(folder, wait_s=0.0):
        for place, inside, _ in os.walk(folder):
            for name in inside:
                if not Path(place, name).is_symlink():
                    Path(place, name).chmod(stat.S_IRWXU)
        shutil.rmtree(folder)
