"""The role nvidia_driver in check mode: what it would install, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.playbooks.gpu_fakes import OTHER_DRIVERS, STAYS
from tests.unit.playbooks.gpu_runs import checkout, run
from trainyard.host.packages import Packages

__all__ = ["checkout"]

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

PIN, NOUVEAU = "/etc/apt/preferences.d/trainyard-nvidia-driver", "/etc/modprobe.d/trainyard-nouveau.conf"


@pytest.mark.parametrize(
    ("distribution", "variables", "packages"),
    [
        ("Debian", "nvidia_driver_source=nvidia", ["nvidia-kernel-open-dkms=580.*", "nvidia-driver-cuda=580.*"]),
        ("Ubuntu", "nvidia_driver_source=nvidia nvidia_driver_branch=570",
         ["nvidia-dkms-570-open=570.*", "libnvidia-compute-570=570.*", "nvidia-utils-570=570.*"]),
        ("Debian", "nvidia_driver_source=nvidia nvidia_driver_version=580.105.08",
         ["nvidia-kernel-open-dkms=580.105.08*", "nvidia-driver-cuda=580.105.08*"]),
        ("Debian", "nvidia_driver_source=distro", ["nvidia-open-kernel-dkms", "libcuda1", "nvidia-smi"]),
    ],
)  # fmt: skip
def test_the_driver_of_each_source(
    checkout: Path, tmp_path: Path, distribution: str, variables: str, packages: list[str]
) -> None:
    arguments = ("-e", variables)
    status, given, output = run(checkout, tmp_path, "nvidia_driver", *arguments, distribution=distribution, hosts="w1")
    assert status == 0, output
    (asked,) = [each for each in given if each.get("may_remove")]
    assert ["linux-headers-6.12"] in [each.get("packages") for each in given]
    assert asked["packages"] == packages
    assert (asked["hold"], asked["may_downgrade"]) == (True, True)
    written = {file["dest"] for each in given for file in each.get("files", ())}
    assert (PIN in written, NOUVEAU in written) == ("source=nvidia" in variables, True)
    goes = Packages({}, may_remove=asked["may_remove"])._may_go
    for name in OTHER_DRIVERS:
        assert goes(name), name
    for name in STAYS:
        assert not goes(name), name


def test_an_installation_that_is_refused_leaves_no_pin(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APT_REFUSES", "Installing it would remove gnome.")
    status, given, output = run(checkout, tmp_path, "nvidia_driver", "-e", "nvidia_driver_source=nvidia", hosts="w1")
    assert status != 0 and "would remove gnome" in output, output
    written = sorted([file["dest"] for file in each["files"]] for each in given if "files" in each)
    assert written == [[], [PIN]], "the pin, and then none; nouveau is left alone"


def test_prometheus_is_told_where_the_inventory_says_how(checkout: Path, tmp_path: Path) -> None:
    arguments = ("-e", "nvidia_driver_textfile=/srv/prom/gpus.prom")
    status, given, output = run(checkout, tmp_path, "nvidia_driver", *arguments, hosts="w1")
    assert (status, given) == (0, ["/srv/prom/gpus.prom"]), output


def test_a_driver_that_is_there_is_only_looked_at(checkout: Path, tmp_path: Path) -> None:
    status, given, output = run(checkout, tmp_path, "nvidia_driver", hosts="w1")
    assert (status, given) == (0, []), output
