"""Two "hosts" that share no memory and no loopback: network namespaces joined by a virtual cable.

The scheduler and one worker are on the first, the other worker is on the second; the client is
here and reaches both through a bridge. Needs root; without it two sets of processes that talk TCP
over the loopback take their place (test_everywhere.py).
"""

import os
import random
import shutil
import subprocess
from uuid import uuid4

import pytest

from biglp._engines import SerialEngine, make_engine
from clusters import DaskProcesses
from everywhere_program import CASES, fit_all, write_rows

pytest.importorskip("distributed")


def sh(command):
    subprocess.run(command.split(), check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Two namespaces, and an address for each, cabled to a bridge of this one."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the ip command")
    name = f"blp{uuid4().hex[:6]}"
    # A network of its own: with a fixed one, two runs on one machine get each other's packets.
    network = f"10.213.{random.SystemRandom().randrange(1, 255)}"
    made = []
    try:
        try:
            sh(f"ip link add {name} type bridge")
            made.append(f"ip link del {name}")
            sh(f"ip addr add {network}.1/24 dev {name}")
            sh(f"ip link set {name} up")
            for i in (1, 2):
                sh(f"ip netns add {name}{i}")
                made.append(f"ip netns del {name}{i}")
                sh(f"ip link add {name}v{i} type veth peer name {name}p{i}")
                sh(f"ip link set {name}v{i} master {name} up")
                sh(f"ip link set {name}p{i} netns {name}{i}")
                sh(f"ip netns exec {name}{i} ip addr add {network}.{10 + i}/24 dev {name}p{i}")
                sh(f"ip netns exec {name}{i} ip link set {name}p{i} up")
                sh(f"ip netns exec {name}{i} ip link set lo up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        yield {f"{name}{i}": f"{network}.{10 + i}" for i in (1, 2)}
    finally:
        for command in reversed(made):
            subprocess.run(command.split(), check=False, capture_output=True)


def test_dask_across_two_hosts(hosts, tmp_path):
    write_rows(tmp_path)
    inside = [("ip", "netns", "exec", host) for host in hosts]
    first, second = hosts.values()
    where = [first, first, second]
    prefixes = [inside[0], inside[0], inside[1]]
    with (
        DaskProcesses(tmp_path, 2, prefixes, where) as processes,
        make_engine(processes.address) as engine,
    ):
        engine.client.wait_for_workers(2, timeout=60)
        addresses = {address.split(":")[1] for address in engine.client.nthreads()}
        assert addresses == {f"//{first}", f"//{second}"}
        found = fit_all(engine, tmp_path)
    serial = fit_all(SerialEngine(), tmp_path)
    assert {name.split("/")[0] for name in found} == {*CASES, "regression"}
    for name, array in serial.items():
        assert found[name].tobytes() == array.tobytes(), name
