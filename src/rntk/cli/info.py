"""`rntk info`: what a bug report needs to say about the machine and the installation."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from .. import __version__
from .extras import missing_packages
from .output import make_console


def info() -> None:
    """Show versions, processor, threads, cache folder and optional parts."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("rntk", __version__)
    table.add_row("python", f"{platform.python_version()} ({platform.system()} {platform.machine()})")
    for package in ("numpy", "scipy", "scikit-learn", "numba"):
        table.add_row(package, metadata.version(package))
    table.add_row("processor", processor_name())
    table.add_row("threads", describe_threads())
    table.add_row("compiled code", describe_cache())
    for extra, missing in missing_packages().items():
        table.add_row(f"rntk[{extra}]", "installed" if not missing else f"missing {', '.join(missing)}")
    make_console().print(table)


def processor_name() -> str:
    """The processor as its maker calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or "unknown"


def describe_threads() -> str:
    """Threads a kernel takes unless told otherwise, and the cores of the machine."""
    from ..runtime import count_threads

    return f"{count_threads(None)} of {os.cpu_count()} cores"


def describe_cache() -> str:
    """Where compiled code is kept from one process to the next."""
    from ..activations.code_cache import code_folders

    for folder in code_folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return str(folder)
    return "nowhere to keep it: compiled anew by every process; set NUMBA_CACHE_DIR to a writable folder"
