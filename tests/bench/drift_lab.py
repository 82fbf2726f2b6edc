"""What drift is injected into: a lab with its inventory, the program that looks for it, and what must not change
meanwhile."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import inputs
import yaml
from mishaps import until
from sides import Site
from stand import SITE_LIMIT, Stand
from timed import BenchError

RUN_SECONDS = 900.0
KUBECTL = "kubectl --kubeconfig=/etc/kubernetes/admin.conf"
DISK = "/var/lib/trainyard-drift"
"""A small disk of a node, whose bound is one of the inventory's."""
SETTINGS = {
    # Each group drifts on several of four hosts at once.
    "reprovision_max_hosts": "100%",
    "base_disk_free_min_mib": {"/var/lib": 5120, DISK: 32},
}
LINES, LINE = 4, 200
"""Lines of what has changed that are shown, and characters of each."""
KINDS = (
    "namespaces,configmaps,secrets,services,serviceaccounts,persistentvolumes,persistentvolumeclaims,daemonsets,"
    "deployments,networkpolicies,clusterroles,clusterrolebindings,roles,rolebindings,customresourcedefinitions,"
    "validatingwebhookconfigurations,mutatingwebhookconfigurations"
)
"""What somebody applies; what controllers note all the time is left out."""
# Scopes of pods are transient units: they come and go with them.
FILES = """
find /etc /usr/local /var/lib/kubelet/config.yaml /var/lib/kubelet/pki -xdev ! -type d \
  ! -path '/etc/cni/net.d/*' ! -name resolv.conf ! -name mtab -printf '%p %m %s %T@ %C@ %l\\n' | sort
dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Abbrev}\\n'
systemctl list-unit-files --no-legend --no-pager | grep -v ' transient ' | sort
systemctl is-active containerd kubelet docker nginx docker-registry chrony || true
sysctl --all 2> /dev/null | grep -E 'net.ipv4.ip_forward |bridge-nf-call' | sort
cat /etc/hosts
"""


def state(stand: Stand) -> dict[str, str]:
    """Host, `cluster` or `controller` -> what a report must leave as it is, line by line."""
    found = {}
    for host in hosts_of(stand.inventory):
        found[host] = stand.on_node(host, "sh", "-c", FILES)
    listed = json.loads(stand.on_node("cp1", "sh", "-c", f"{KUBECTL} get {KINDS} --all-namespaces --output=json"))
    found["cluster"] = "\n".join(json.dumps(_lasting(each), sort_keys=True) for each in listed["items"])
    paths = sorted(path for path in stand.state.rglob("*") if path.is_file() and "reprovision" not in path.parts)
    told = [f"{path} {path.stat().st_mode:o} {path.stat().st_mtime_ns}" for path in paths if path.suffix != ".log"]
    found["controller"] = "\n".join(told)
    return found


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Place -> the first lines that differ, of those that do."""
    found = {}
    for place in before:
        lines = difflib.unified_diff(before[place].splitlines(), after[place].splitlines(), n=0, lineterm="")
        if shown := [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]:
            found[place] = "; ".join(line[:LINE] for line in shown[:LINES])
    return found


def _lasting(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what its controllers write by themselves."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def hosts_of(inventory: Path) -> list[str]:
    """Hosts of the inventory's nodes, which are the lab's containers."""
    return sorted(hostvars(inventory))


def hostvars(inventory: Path) -> dict[str, Any]:
    """Host -> its variables."""
    told = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(inventory), "--list"],
        capture_output=True, text=True, check=True, timeout=120, cwd=inputs.ROOT,
    )  # fmt: skip
    return dict(json.loads(told.stdout)["_meta"]["hostvars"])


@dataclass(frozen=True)
class Ran:
    """One run of `trainyard reprovision run`."""

    status: int
    seconds: float
    report: Mapping[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        return list(self.report["items"])


def reprovision(stand: Stand, mode: str) -> Ran:
    """Run it once.

    :raises BenchError: it leaves no report.
    """
    before = _last(stand)
    program = [sys.executable, "-m", "trainyard", "-i", str(stand.inventory), "reprovision"]
    began = time.monotonic()
    done = subprocess.run(
        [*program, "run", "--mode", mode], cwd=inputs.ROOT, capture_output=True, text=True, check=False,
        timeout=RUN_SECONDS, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    seconds, report = time.monotonic() - began, _last(stand)
    (stand.folder / f"{report.get('id', 'none')}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if not report or report.get("id") == before.get("id"):
        raise BenchError(f"The {mode} left no report: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    (stand.folder / f"{report['id']}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    return Ran(done.returncode, seconds, report)


def _last(stand: Stand) -> dict[str, Any]:
    code, said = stand.answer("reprovision", "show", "--json")
    return dict(json.loads(said)) if code == 0 and said.startswith("{") else {}


def with_settings(inventory: Path, *, builder: bool) -> None:
    """Give a copied inventory the bench's settings.

    :param builder: worker2 gets Docker as well, which a lab that stands may lack.
    """
    text = yaml.safe_dump(SETTINGS, sort_keys=False)
    (inventory / "group_vars" / "all" / "drift.yml").write_text(f"---\n{text}", encoding="utf-8")
    if builder:
        path = inventory / "hosts.yml"
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
        listed["all"]["children"]["builders"] = {"hosts": {"worker2": None}}
        path.write_text(yaml.safe_dump(listed, sort_keys=False), encoding="utf-8")


@contextmanager
def standing(options: Namespace) -> Iterator[Stand]:
    """The lab, with settings of its own: made and removed, or a copy of the inventory of a given one.

    :raises BenchError: the lab cannot be made.
    """
    folder = Path(tempfile.mkdtemp(prefix="trainyard-drift-", dir="/var/tmp"))
    print(f"logs are in {folder}", flush=True)
    own = None if options.inventory else Site(folder)
    inventory = folder / "inventory"
    try:
        if own:
            own.prepare()
            own.down()
        else:
            shutil.copytree(options.inventory, inventory)
        with_settings(inventory, builder=own is not None or options.builder)
        stand = Stand(inventory, options.lab, folder)
        stand.play("site.yml", limit=SITE_LIMIT)
        yield stand
    finally:
        if own:
            own.down()


def on(host: str, script: str) -> Callable[[Stand], None]:
    """A script in a node's container, which ends at its first error."""
    return lambda stand: stand.on_node(host, "sh", "-ec", script) and None


def kubectl(script: str) -> Callable[[Stand], None]:
    """A script with `k` for kubectl."""
    return on("cp1", f'k() {{ {KUBECTL} "$@"; }}\n{script}')


def answering(stand: Stand) -> None:
    """Wait until the API server answers, and all nodes are Ready."""

    def ready() -> bool:
        try:
            said = stand.on_node("cp1", "sh", "-c", f"{KUBECTL} get nodes --no-headers --request-timeout=5s")
        except BenchError:
            return False
        ours = [line.split() for line in said.splitlines() if line.split()[0] in hosts_of(stand.inventory)]
        return bool(ours) and all(line[1].startswith("Ready") for line in ours)

    until("the nodes", ready, 240.0)
