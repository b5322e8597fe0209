"""One driver at a time: a small file in the dataset that says who computes it, kept fresh by a heartbeat.

A driver that was killed leaves its lease behind. On the same machine that is seen at once, its process
being gone; from another machine, when the heartbeat has stood still for two minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.store import layout

BEAT_SECONDS = 15.0
STALE_SECONDS = 120.0


class Lease:
    """The right to write to one dataset, from `acquire` to `release`."""

    def __init__(self, path: str | Path) -> None:
        self.file = Path(path) / layout.FOLDER / "lease.json"
        self.name = uuid.uuid4().hex
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self) -> None:
        """Take the lease, or say in one line (ValueError) who holds it."""
        self.file.parent.mkdir(exist_ok=True)
        for _ in range(3):  # whoever took over a stale lease first has it
            if self._create():
                self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)
                self._thread.start()
                return
            holder = self._read()
            if holder is not None and _is_alive(holder):
                where = f"process {holder.get('pid')} on {holder.get('host')}"
                raise ValueError(
                    f"store.path: got {str(self.file.parent.parent)!r}, which {where} is computing; "
                    "allowed: a dataset that no other run is writing to"
                )
            self._bury(holder)
        raise ValueError(
            f"store.path: got {str(self.file.parent.parent)!r}, which another run has just taken"
        )

    def release(self) -> None:
        """Give the lease back; harmless if it was lost."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self.is_held():
            self.file.unlink(missing_ok=True)

    def is_held(self) -> bool:
        """Whether the lease is still ours: a driver that was suspended for minutes may have lost it."""
        holder = self._read()
        return holder is not None and holder.get("name") == self.name

    def _create(self) -> bool:
        draft = self.file.with_name(f"lease.{self.name}.partial")
        draft.write_text(json.dumps(self._record()), encoding="utf-8")
        try:
            os.link(draft, self.file)  # atomic, and fails where there is one: on network file systems too
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def _record(self) -> dict[str, Any]:
        return {"name": self.name, "pid": os.getpid(), **_home(), "heartbeat": time.time()}

    def _read(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def _bury(self, holder: dict[str, Any] | None) -> None:
        """Take a dead lease away; if a living one was caught in between, put it back."""
        grave = self.file.with_name(f"lease.{self.name}.old.partial")
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.file, grave)
            if holder is not None and json.loads(grave.read_text(encoding="utf-8")) != holder:
                with contextlib.suppress(FileExistsError):
                    os.link(grave, self.file)
            grave.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):  # a full disk must not end the run that could still finish
                if not self.is_held():
                    return
                layout.replace(self.file, json.dumps(self._record()).encode())


def _home() -> dict[str, Any]:
    """Where process ids mean the same: the machine, since its last start, and the namespace of processes."""
    home: dict[str, Any] = {"host": socket.gethostname(), "boot": "", "namespace": ""}
    with contextlib.suppress(OSError):
        home["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        home["namespace"] = os.readlink("/proc/self/ns/pid")
    return home


def _is_alive(holder: dict[str, Any]) -> bool:
    try:
        beat, pid = float(holder["heartbeat"]), int(holder["pid"])
    except (KeyError, TypeError, ValueError):
        return False  # nobody's
    if abs(time.time() - beat) > STALE_SECONDS:
        return False
    at_home = all(holder.get(key) == value for key, value in _home().items())
    return _runs(pid) if at_home else True


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def lease(path: str | Path) -> Iterator[Lease]:
    """Hold the dataset's lease; ValueError where another run holds it."""
    held = Lease(path)
    held.acquire()
    try:
        yield held
    finally:
        held.release()
