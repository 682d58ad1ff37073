"""Two "hosts" that share no memory and no loopback: network namespaces joined by virtual cables.

The client is in a third one, with a bridge that reaches both: interfaces that came and went in this
machine's own would interrupt the browsers of other tests. Needs root; without it two sets of
processes that talk TCP over the loopback take their place (test_everywhere.py).
"""

import os
import random
import shutil
import subprocess
import sys
from uuid import uuid4

import numpy as np
import pytest

from biglp._engines import SerialEngine
from clusters import PATHS, TESTS
from everywhere_program import CASES, fit_all, write_rows

pytest.importorskip("distributed")


def sh(command):
    subprocess.run(command.split(), check=True, capture_output=True)


@pytest.fixture
def hosts():
    """The client's namespace, and the addresses of two others."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the ip command")
    hub = f"blp{uuid4().hex[:6]}"
    network = f"10.213.{random.SystemRandom().randrange(1, 255)}"
    made = []
    try:
        try:
            for name in (hub, f"{hub}1", f"{hub}2"):
                sh(f"ip netns add {name}")
                made.append(name)
                sh(f"ip -n {name} link set lo up")
            sh(f"ip -n {hub} link add bridge type bridge")
            sh(f"ip -n {hub} addr add {network}.1/24 dev bridge")
            sh(f"ip -n {hub} link set bridge up")
            for i in (1, 2):
                sh(f"ip -n {hub} link add cable{i} type veth peer name cable netns {hub}{i}")
                sh(f"ip -n {hub} link set cable{i} master bridge up")
                sh(f"ip -n {hub}{i} addr add {network}.{10 + i}/24 dev cable")
                sh(f"ip -n {hub}{i} link set cable up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        yield hub, {f"{hub}{i}": f"{network}.{10 + i}" for i in (1, 2)}
    finally:
        for name in reversed(made):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def test_dask_across_two_hosts(hosts, tmp_path):
    write_rows(tmp_path)
    hub, others = hosts
    program = [sys.executable, str(TESTS / "two_hosts_program.py"), str(tmp_path)]
    done = subprocess.run(
        ["ip", "netns", "exec", hub, *program, *(f"{name}={at}" for name, at in others.items())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "found.npz") as found:
        serial = fit_all(SerialEngine(), tmp_path)
        assert {name.split("/")[0] for name in found} == {*CASES, "regression"}
        for name, array in serial.items():
            assert found[name].tobytes() == array.tobytes(), name
