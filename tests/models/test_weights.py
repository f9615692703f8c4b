"""The digest of weights is computed once for each state of a file."""

import hashlib
import os
from pathlib import Path

from evolve.models.weights import cache_folder, weights_sha256


def test_digest_is_that_of_the_file(tmp_path: Path) -> None:
    """The digest is the file's SHA-256, and changes with the file."""
    path = tmp_path / "w.gguf"
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for content in (b"one", b"three"):
        path.write_bytes(content)
        assert weights_sha256(path, environ=environ) == hashlib.sha256(content).hexdigest()


def test_digest_is_kept_while_the_file_stays_the_same(tmp_path: Path) -> None:
    """A file of the same path, size and time of change is not read again; a touched one is."""
    path = tmp_path / "w.gguf"
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    path.write_bytes(b"one")
    status = path.stat()
    before = weights_sha256(path, environ=environ)
    path.write_bytes(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert weights_sha256(path, environ=environ) == before
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert weights_sha256(path, environ=environ) == hashlib.sha256(b"two").hexdigest()


def test_cache_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    """Without a cache folder the digest is computed each time."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    path = tmp_path / "w.gguf"
    path.write_bytes(b"one")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert weights_sha256(path, environ=environ) == hashlib.sha256(b"one").hexdigest()


def test_cache_folder_follows_the_user() -> None:
    """XDG_CACHE_HOME decides, else the home folder."""
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/evolve")
    assert cache_folder({}) == Path.home() / ".cache" / "evolve"
