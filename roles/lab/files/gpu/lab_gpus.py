#!/usr/bin/python3
"""Gives this host of a lab GPUs that are not there, and lets things happen to them.

A "driver" is two files and some device nodes: a copy of what stands in for NVIDIA's management library, named after the
version that it reports and with the GPUs written into it, and `nvidia-smi`. What happens at run time lies below
/run/lab-gpus, so that a restart of the host makes it good, as it would reload a real kernel module.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
import subprocess
import sys
import uuid
from pathlib import Path

HOME = Path("usr/lib/lab-gpus")
"""The compiled mock, as the bundle made it: `libnvidia-ml.so`, `nvidia-smi` and `profiles.json`."""
LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
LIBRARY = "libnvidia-ml.so.1"
TMPFILES = Path("etc/tmpfiles.d/lab-gpus.conf")
KEPT = Path("etc/lab-gpus.json")
RUN = Path("run/lab-gpus")
MARK, ROOM = b"@lab-gpus-settings@", 1 << 16
"""How the library's room for its settings begins, and its bytes."""

MAJOR, UVM_MAJOR = 195, 511
"""Device numbers of the NVIDIA driver; that of unified memory is given at run time by a real kernel."""
NODES = {
    "nvidiactl": (MAJOR, 255),
    "nvidia-modeset": (MAJOR, 254),
    "nvidia-uvm": (UVM_MAJOR, 0),
    "nvidia-uvm-tools": (UVM_MAJOR, 1),
}
APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""A program's fault, not the GPU's: it is told, and leaves nothing to be made good."""
FELL_OFF_THE_BUS = 79
MOST = 16
"""GPUs that the library has room for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("/"), help="folder of the host's files, for tests")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("install", help="give this host GPUs, or other ones")
    verb.add_argument("count", type=int)
    verb.add_argument("--profile", required=True)
    verb.add_argument("--driver", required=True, help="version of the driver")
    verb.add_argument("--cuda", required=True, help="newest CUDA that the driver knows, such as 13.0")
    verb.add_argument("--seed", default=os.uname().nodename, help="what the UUIDs are made from")
    verb = verbs.add_parser("xid", help="report a fault")
    verb.add_argument("gpu", type=int)
    verb.add_argument("xid", type=int)
    verbs.add_parser("recover", help="make a GPU's fault good").add_argument("gpu", type=int)
    verbs.add_parser("unplug", help="take a GPU away").add_argument("gpu", type=int)
    verbs.add_parser("plug", help="bring a GPU back").add_argument("gpu", type=int)
    verb = verbs.add_parser(
        "driver", help="install another version; the loaded module stays the old one until a restart"
    )
    verb.add_argument("version")
    verbs.add_parser("restart", help="load the module of the installed version, as a restart of the host does")
    options = parser.parse_args()
    try:
        Host(options.root).do(options)
    except (OSError, ValueError) as error:
        sys.exit(f"lab-gpus: {error}")


class Host:
    """The files of one host.

    :param root: folder in which the host's root file system lies.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.run = root / RUN

    def do(self, options: argparse.Namespace) -> None:
        """Carry out a verb of the command line.

        :raises ValueError: unknown GPU, profile, or a version that is none.
        """
        if options.verb == "install":
            self.install(options)
        elif options.verb == "driver":
            self.change_driver(options.version)
        elif options.verb == "restart":
            self._write(self.run / "module", self._kept()["driver"] + "\n")
        else:
            gpu = options.gpu
            if gpu not in range(self._kept()["count"]):
                raise ValueError(f"this host has no GPU {gpu}, it has {self._kept()['count']}")
            if options.verb == "xid":
                self.report(gpu, options.xid)
            else:
                {"recover": self.recover, "unplug": self.unplug, "plug": self.plug}[options.verb](gpu)

    def install(self, options: argparse.Namespace) -> None:
        profiles = json.loads((self.root / HOME / "profiles.json").read_text(encoding="utf-8"))
        if options.profile not in profiles:
            raise ValueError(f"there is no profile {options.profile}, there are: {', '.join(profiles)}")
        if options.count not in range(MOST + 1):
            raise ValueError(f"a host can have up to {MOST} GPUs, not {options.count}")
        kept = {name: getattr(options, name) for name in ("count", "profile", "driver", "cuda", "seed")}
        self._write(self.root / KEPT, json.dumps(kept) + "\n")
        lines = [f"c /dev/{name} 0666 root root - {major}:{minor}" for name, (major, minor) in self._nodes().items()]
        self._write(self.root / TMPFILES, "".join(f"{line}\n" for line in [*lines, "d /run/lab-gpus 0755 root root"]))
        self._put_library(kept, profiles[options.profile])
        self._copy(self.root / HOME / "nvidia-smi", self.root / "usr/bin/nvidia-smi", 0o755)
        self._write(self.run / "module", f"{options.driver}\n")
        for path in (self.root / "dev").glob("nvidia*"):
            if path.name not in self._nodes():
                path.unlink()
        for name in self._nodes():
            self._make_node(name)

    def change_driver(self, version: str) -> None:
        """What the upgrade of a package does on a running host: other files, the same module in the kernel."""
        kept = {**self._kept(), "driver": version}
        if not (self.run / "module").exists():
            self._write(self.run / "module", self._kept()["driver"] + "\n")
        profiles = json.loads((self.root / HOME / "profiles.json").read_text(encoding="utf-8"))
        self._put_library(kept, profiles[kept["profile"]])
        self._write(self.root / KEPT, json.dumps(kept) + "\n")

    def report(self, gpu: int, xid: int) -> None:
        if xid not in APPLICATION_XIDS:
            self._write(self.run / f"fault.{gpu}", f"{xid}\n")
        with (self.run / "events").open("a", encoding="ascii") as file:
            file.write(f"{gpu} {xid}\n")
        if self.root == Path("/"):
            # As the driver writes it into the kernel's log, which all hosts of a lab would have in common.
            line = f"NVRM: Xid (PCI:0000:{gpu + 1:02x}:00): {xid}, pid='<unknown>', name=<unknown>"
            subprocess.run(["logger", "--tag", "kernel", line], check=True, timeout=10)

    def recover(self, gpu: int) -> None:
        (self.run / f"fault.{gpu}").unlink(missing_ok=True)

    def unplug(self, gpu: int) -> None:
        self.report(gpu, FELL_OFF_THE_BUS)
        (self.root / "dev" / f"nvidia{gpu}").unlink(missing_ok=True)

    def plug(self, gpu: int) -> None:
        self._make_node(f"nvidia{gpu}")
        self.recover(gpu)

    def _kept(self) -> dict:
        try:
            return json.loads((self.root / KEPT).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError("this host has no GPUs; `install` gives it some") from None

    def _nodes(self) -> dict[str, tuple[int, int]]:
        count = self._kept()["count"]
        return {f"nvidia{gpu}": (MAJOR, gpu) for gpu in range(count)} | (NODES if count else {})

    def _make_node(self, name: str) -> None:
        path = self.root / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.root != Path("/"):
            path.touch()
            return
        # At boot systemd makes the same.
        with contextlib.suppress(FileExistsError):
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*self._nodes()[name]))
        path.chmod(0o666)

    def _put_library(self, kept: dict, profile: dict) -> None:
        """Name and settings of the new one are in place with one rename; programs that run keep the old one."""
        settings = _settings(kept, profile)
        content = bytearray((self.root / HOME / "libnvidia-ml.so").read_bytes())
        start = content.find(MARK)
        if start < 0 or len(settings) >= ROOM:
            raise ValueError("the library has no room for these settings")
        content[start : start + ROOM] = settings.ljust(ROOM, b"\0")
        folder = self.root / LIBRARIES
        name = f"libnvidia-ml.so.{kept['driver']}"
        self._write(folder / name, bytes(content), 0o644)
        staged = folder / f".{LIBRARY}.new"
        staged.unlink(missing_ok=True)
        staged.symlink_to(name)
        staged.rename(folder / LIBRARY)
        for other in folder.glob("libnvidia-ml.so.*.*"):
            if other.name != name:
                other.unlink()

    def _copy(self, source: Path, target: Path, mode: int) -> None:
        self._write(target, source.read_bytes(), mode)

    @staticmethod
    def _write(path: Path, content: str | bytes, mode: int = 0o644) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = path.with_name(f".{path.name}.new")
        staged.write_bytes(content.encode() if isinstance(content, str) else content)
        staged.chmod(mode)
        staged.rename(path)


def _settings(kept: dict, profile: dict) -> bytes:
    """The text that the library reads: version of driver and CUDA, and the properties of each GPU."""
    major, _, minor = kept["cuda"].partition(".")
    lines = [f"driver {kept['driver']}", f"cuda {int(major) * 1000 + int(minor or 0) * 10}"]
    for gpu in range(kept["count"]):
        name = uuid.uuid5(uuid.NAMESPACE_DNS, f"{kept['seed']}/{gpu}")
        own = {"uuid": f"GPU-{name}", "serial": f"{name.int % 10**13:013}", "bus": f"00000000:{gpu + 1:02X}:00.0"}
        lines += [f"{gpu}.{key} {value}" for key, value in {**profile, **own}.items()]
    return "".join(f"{line}\n" for line in lines).encode()


if __name__ == "__main__":
    main()
