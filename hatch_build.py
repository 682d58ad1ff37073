"""Compile the loops of ``biglp/_compiled/c`` into the wheel, where there is a C compiler.

Without one the wheel is for every platform, and NumPy does their work. ``python hatch_build.py``
compiles them for the sources beside it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # to compile, it is not needed
    BuildHookInterface = object

LIBRARY = Path("src/biglp/_compiled") / ("loops.dll" if os.name == "nt" else "loops.so")
FLAGS = ["-O3", "-std=gnu11", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"]
AVX2 = ["-mavx2", "-mfma"]
AVX512 = [*AVX2, *(f"-mavx512{part}" for part in ("f", "cd", "bw", "dq", "vl"))]
WAYS = {
    "x86_64": {"avx2": AVX2, "avx512": AVX512},
    "aarch64": {"neon": []},
    "arm64": {"neon": []},
}


class CustomBuildHook(BuildHookInterface):
    """The library goes into the wheel, or stands beside the sources of an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile it, and name the wheel for the platform; or leave it a pure one."""
        library = Path(self.root) / LIBRARY
        try:
            compiled = compile_loops(library)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"the C compiler failed: {error}")
            compiled = False
        if compiled:
            # What git ignores is left out of a wheel otherwise.
            build_data["artifacts"].append(f"/{LIBRARY.as_posix()}")
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"
        else:
            self.app.display_warning("no loops in C for this processor: NumPy does their work")


def compile_loops(library: Path, extra: list[str] | None = None) -> bool:
    """Compile each file for each type of numbers and each kind of processor; whether it was."""
    library.unlink(missing_ok=True)
    compiler = _compiler()
    if compiler is None:
        return False
    machine = subprocess.run([*compiler, "-dumpmachine"], capture_output=True, text=True).stdout
    ways = WAYS.get(machine.split("-")[0])
    if ways is None:
        return False
    sources, flags = library.parent / "c", [*FLAGS, *(extra or [])]
    flags += [] if os.name == "nt" else ["-fPIC"]
    loops = sorted(source.name for source in sources.glob("*.c") if source.name != "ways.c")
    with tempfile.TemporaryDirectory() as folder:
        jobs = [([*flags, "ways.c"], f"{folder}/ways.o")]
        for way, those in ways.items():
            for kind in ("SINGLE", "DOUBLE"):
                for loop in loops:
                    words = [*flags, *those, f"-DWAY={way}", f"-D{kind}", loop]
                    jobs.append((words, f"{folder}/{loop}-{way}-{kind}.o"))

        def compiled(job: tuple[list[str], str]) -> str:
            words, target = job
            # Relative paths only: the same bytes come of any folder.
            subprocess.run([*compiler, "-c", *words, "-o", target], cwd=sources, check=True)
            return target

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            objects = list(threads.map(compiled, jobs))
        linked = [*compiler, "-shared", *(extra or []), *objects, "-o", str(library)]
        subprocess.run(linked, check=True)
    return True


def _compiler() -> list[str] | None:
    """The command ``CC``, or else cc, clang or gcc."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    names = ("cc", "clang", "gcc")
    return next(([path] for name in names if (path := shutil.which(name))), None)


if __name__ == "__main__":
    done = compile_loops(Path(__file__).parent / LIBRARY, sys.argv[1:])
    sys.exit(0 if done else "there is no C compiler for this processor")
