"""Makes the root file system with debootstrap, as root, outside any checkout.

python -m evolve.environments.os_interaction.build [--into FOLDER] [--suite NAME] [--mirror URL]
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from evolve.environments.os_interaction.rootfs import HOST_NAME, MARKER, Rootfs, default_folder, read_rootfs
from evolve.errors import UserError

SUITE = "bookworm"
PACKAGES = (
    *("bc", "bsdextrautils", "curl", "file", "g++", "gawk", "gcc", "git", "iproute2", "iputils-ping", "less", "lsof"),
    *("make", "net-tools", "procps", "psmisc", "python3", "sudo", "tree", "unzip", "vim-tiny", "wget", "xz-utils"),
    "zip",
)
TRIMMED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt", "var/lib/apt/lists")


def build(into: Path, *, suite: str = SUITE, mirror: str | None = None) -> Rootfs:
    """Make a root file system in a new folder; where that fails nothing is left of it.

    Raises:
        UserError: not root, no debootstrap, a folder that is there already, or debootstrap failed.
    """
    if os.geteuid() != 0:
        raise UserError("a root file system is built as root")
    if shutil.which("debootstrap") is None:
        raise UserError("debootstrap is not on PATH; `apt-get install debootstrap` brings it")
    if into.exists():
        raise UserError(f"{into} is there already; remove it to build it anew")
    part = into.with_name(f"{into.name}.part-{secrets.token_hex(4)}")
    (part / "mount").mkdir(parents=True)
    try:
        _debootstrap(part / "root", suite, mirror)
        _furnish(part, suite)
        part.rename(into)
    except BaseException:
        shutil.rmtree(part)
        raise
    return read_rootfs(into)


def _debootstrap(target: Path, suite: str, mirror: str | None) -> None:
    # A mount namespace of its own: what debootstrap mounts in the target is gone when it ends, however it ends.
    command = ["unshare", "--mount", "--propagation", "private", "debootstrap", "--variant=minbase"]
    command += [f"--include={','.join(PACKAGES)}", suite, str(target), *([mirror] if mirror else [])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), check=False)
    if done.returncode != 0:
        raise UserError(f"debootstrap ended with status {done.returncode}; its last words are above")


def _furnish(part: Path, suite: str) -> None:
    """Drop what no task reads, name the host, and write marker and manifest."""
    root = part / "root"
    listing = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "--show"]
    packages = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines()
    for trimmed in TRIMMED:
        shutil.rmtree(root / trimmed, ignore_errors=True)
        (root / trimmed).mkdir(parents=True)
    (root / "etc/hostname").write_text(f"{HOST_NAME}\n", "ascii")
    (root / "etc/hosts").write_text(f"127.0.0.1\tlocalhost\n127.0.1.1\t{HOST_NAME}\n", "ascii")
    (root / "etc/resolv.conf").write_text("", "ascii")
    marker = secrets.token_hex(16)
    (root / MARKER).write_text(f"{marker}\n", "ascii")
    manifest = {"schema_version": 1, "suite": suite, "marker": marker, "packages": sorted(packages)}
    (part / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", "ascii")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Make the root file system of os_interaction with debootstrap.")
    parser.add_argument("--into", type=Path, default=default_folder(), help="the folder to make (%(default)s)")
    parser.add_argument("--suite", default=SUITE, help="the Debian suite (%(default)s)")
    parser.add_argument("--mirror", help="where packages come from; debootstrap's own default otherwise")
    chosen = parser.parse_args(arguments)
    try:
        made = build(chosen.into.absolute(), suite=chosen.suite, mirror=chosen.mirror)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{made.folder}: {made.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
