import os
import signal
import subprocess
import sys

import pytest

from evolve.errors import WorkspaceBusy
from evolve.lock import WorkspaceLock, alone_in

HOLD = """
import sys, time
from pathlib import Path
from evolve.lock import WorkspaceLock
with WorkspaceLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_told_who_holds_the_workspace(tmp_path):
    """The message names the holder's process id, and kill -9 gives the lock back."""
    path = tmp_path / "ws" / "lock"
    with hold(path) as holder:
        with pytest.raises(WorkspaceBusy, match=f"process {holder.pid} since"), WorkspaceLock(path, wait_s=0):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with WorkspaceLock(path) as lock:
        assert lock.held_since is not None


def test_a_lock_cannot_be_taken_twice_in_one_process(tmp_path):
    """A second lock object in the same process is refused too."""
    path = tmp_path / "lock"
    with (
        WorkspaceLock(path),
        pytest.raises(WorkspaceBusy, match=f"process {os.getpid()}"),
        WorkspaceLock(path, wait_s=0),
    ):
        pass


def test_a_folder_that_another_holds_is_not_waited_for_without_end(tmp_path):
    """Whoever may read a folder may hold it: after some time the user is told, and nothing is left there."""
    with (
        alone_in(tmp_path),
        pytest.raises(WorkspaceBusy, match="another process holds"),
        alone_in(tmp_path, wait_s=0.1),
    ):
        pass
    with alone_in(tmp_path, wait_s=0.1):
        assert list(tmp_path.iterdir()) == []


def test_release_leaves_no_holder_behind(tmp_path):
    """After the block nothing says that the workspace is in use."""
    path = tmp_path / "lock"
    with WorkspaceLock(path) as lock:
        pass
    assert lock.held_since is None
    assert not (tmp_path / "lock.holder").exists()
    with WorkspaceLock(path):
        pass


def test_a_torn_holder_file_does_not_hide_the_refusal(tmp_path):
    """Where the holder's name cannot be read the message still says that the workspace is in use."""
    path = tmp_path / "lock"
    with WorkspaceLock(path):
        (tmp_path / "lock.holder").write_text("{")
        with pytest.raises(WorkspaceBusy, match="in use by another process"), WorkspaceLock(path, wait_s=0):
            pass
