"""Memory, CPU time and bytes written of a process, as /proc reports them."""

from __future__ import annotations

import os
from pathlib import Path

MIB = 2**20
_TICK = os.sysconf("SC_CLK_TCK")


def rss(pid: int) -> float:
    """MiB of physical memory in use (VmRSS)."""
    return _status(pid, "VmRSS")


def peak(pid: int) -> float:
    """Highest MiB of physical memory in use since the process started (VmHWM)."""
    return _status(pid, "VmHWM")


def virtual(pid: int) -> float:
    """MiB of addresses in use (VmSize), which RLIMIT_AS limits."""
    return _status(pid, "VmSize")


def processor_seconds(pid: int) -> float:
    """Seconds of CPU time, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def bytes_written(pid: int) -> int:
    """Bytes that the process caused to be sent to the disk (`write_bytes`)."""
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "write_bytes":
            return int(value)
    raise AssertionError("the kernel does not count what processes write")


def busy_seconds() -> float:
    """Seconds of CPU time that all processors together were not idle since boot."""
    fields = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = fields
    return (user + nice + system + interrupts + soft + stolen) / _TICK


def size_of(*files: Path) -> int:
    """Bytes of these files together; a missing one counts 0."""
    return sum(file.stat().st_size for file in files if file.exists())


def _status(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / MIB
    raise AssertionError(f"process {pid} has no {field}")
