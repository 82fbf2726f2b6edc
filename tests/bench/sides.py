"""The two sides of the benchmark, each from no lab to a passed training, and their measures."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from inputs import LOG_NODE, LOG_PATH, ROOT, SEED
from memory import Peak, Sampler
from timed import BenchError, timed

from trainyard.project import python_path

LAB, SUBNET = "trainyard-bench", "10.87.0."
HAND = "byhand"
RUN_LIMIT = 900
DOWN_LIMIT = 180
BUNDLE_LIMIT = 3600


@dataclass
class Result:
    """One run of one side.

    :param seconds: from no lab to a passed training.
    :param phases: seconds by phase (by hand) or empty.
    :param second: seconds of an unchanged second run (site.yml) or 0.
    :param seed: seconds of 200 steps with the original settings, from apply to completion, or 0.
    :param training: seconds of the site's training, by its own clock, or 0.
    """

    side: str
    seconds: float
    peak: Peak
    accuracy: float
    log: str
    load: float
    phases: dict[str, float] = field(default_factory=dict)
    second: float = 0.0
    seed: float = 0.0
    training: float = 0.0


class Site:
    """`ansible-playbook site.yml` with a copy of the lab's inventory that creates another lab.

    :param folder: folder for the copy and all logs.
    :param root: the checkout whose playbooks run.
    :param name: name of this side.
    """

    name = "site.yml"

    def __init__(self, folder: Path, root: Path = ROOT, name: str = name) -> None:
        self.folder = folder
        self.root = root
        self.name = name
        self.inventory = folder / "inventory"
        self.state = Path("/var/lib/trainyard") / LAB
        self.env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": python_path(root),
            "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "PROFILE_TASKS_TASK_OUTPUT_LIMIT": "all",
            "COLUMNS": "200",
        }

    def prepare(self) -> None:
        """Copy the inventory, and complete the bundle if parts are missing; neither is timed."""
        shutil.copytree(self.root / "inventories/lab", self.inventory)
        for path in self.inventory.rglob("*.yml"):
            text = path.read_text(encoding="utf-8").replace("10.84.0.", SUBNET)
            path.write_text(re.sub(r"(?m)^lab_name: .*$", f"lab_name: {LAB}", text), encoding="utf-8")
        command = ["ansible", "localhost", "-i", str(self.inventory), "-c", "local", "-m", "include_role"]
        # As JSON, because a path may contain a space.
        command += ["-a", "name=bundle", "-e", json.dumps({"ansible_python_interpreter": sys.executable})]
        self._timed(command, "bundle.log", BUNDLE_LIMIT)

    def down(self) -> None:
        command = ["ansible-playbook", "playbooks/lab_down.yml", "-i", str(self.inventory), "-e", f"lab_confirm={LAB}"]
        self._timed(command, "site-down.log", DOWN_LIMIT)

    def _timed(self, command: list[str], log: str, limit: float) -> float:
        return timed(command, self.folder / log, limit, env=self.env, cwd=self.root)

    def run(self, number: int, inputs: Path) -> Result:
        """Run site.yml, run it again without changes, and run the original training on the result."""
        log = self.folder / f"site-{number}.log"
        command = ["ansible-playbook", "site.yml", "-i", str(self.inventory)]
        load = os.getloadavg()[0]
        with Sampler(LAB) as peak:
            seconds = self._timed(command, log.name, RUN_LIMIT)
        receipt = json.loads((self.state / "receipt.json").read_text(encoding="utf-8"))
        shutil.copy(self.state / "receipt.json", self.folder / f"site-{number}-receipt.json")
        if receipt["verdict"] != "pass":
            raise BenchError(f"The receipt says {receipt['verdict']}; log: {log}")
        pods = running_pods()
        second_log = self.folder / f"site-{number}-second.log"
        second = self._timed(command, second_log.name, RUN_LIMIT)
        changed = re.findall(r"(?m)^(\S+) +: ok=.* changed=([1-9]\d*) ", second_log.read_text(encoding="utf-8"))
        if changed:
            raise BenchError(f"The second run changed {dict(changed)}; log: {second_log}")
        if running_pods() != pods:
            raise BenchError(f"The second run restarted a pod; log: {second_log}")
        seed = seed_run(LAB, inputs, self.folder / f"seed-{number}.log")
        # A receipt from before schema 2 has one training.
        (training,) = receipt["trainings"] if "trainings" in receipt else [receipt["training"]]
        return Result(
            self.name,
            seconds,
            peak,
            float(training["accuracy"]),
            str(log),
            load,
            second=second,
            seed=seed,
            training=float(training["seconds"]),
        )


class Hand:
    """The side of `by_hand.sh`."""

    name = "by hand"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = str(Path(__file__).with_name("by_hand.sh"))

    def down(self) -> None:
        timed([self.script, "down"], self.folder / "hand-down.log", DOWN_LIMIT)

    def run(self, number: int, inputs: Path) -> Result:
        log = self.folder / f"hand-{number}.log"
        load = os.getloadavg()[0]
        with Sampler(HAND) as peak:
            seconds = timed([self.script, "up"], log, RUN_LIMIT, env={"BENCH_INPUTS": str(inputs)})
        text = log.read_text(encoding="utf-8")
        phases = {name: float(value) for name, value in re.findall(r"(?m)^phase (\S+) ([\d.]+)$", text)}
        end = json.loads(re.findall(r'(?m)^\{.*"event": "end".*\}$', text)[-1])
        if end["result"] != "passed":
            raise BenchError(f"The training by hand {end['result']}; log: {log}")
        return Result(self.name, seconds, peak, float(end["accuracy"]), str(log), load, phases=phases)


def kubectl(lab: str, *arguments: str) -> list[str]:
    return ["podman", "exec", "-i", f"{lab}-cp1", "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", *arguments]


def running_pods() -> set[str]:
    """Return identity and restarts of all pods of the site's cluster."""
    path = "{range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{'\\n'}{end}"
    command = kubectl(LAB, "get", "pods", "--all-namespaces", f"--output=jsonpath={path}")
    return set(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines())


def seed_run(lab: str, inputs: Path, log: Path) -> float:
    """Return the seconds from the apply of the original JobSet to its completion; the image is already on the nodes."""
    name = SEED["run"]
    folder = ["install", "-d", "-o", "65532", "-g", "65532", "-m", "0750", f"{LOG_PATH}/{name}"]
    timed(["podman", "exec", f"{lab}-{LOG_NODE}", *folder], log, 60)
    apply = kubectl(lab, "apply", "--server-side", "--filename=-")
    timed(apply, log, 60, given=inputs / f"{name}-around.json")
    seconds = timed(apply, log, 60, given=inputs / f"{name}-jobset.json")
    state = "--for=jsonpath={.status.terminalState}=Completed"
    seconds += timed(kubectl(lab, "--namespace=trainings", "wait", "--timeout=290s", f"jobset/{name}", state), log, 300)
    timed(kubectl(lab, "--namespace=trainings", "logs", f"job/{name}-chief-0"), log, 60)
    if f'"step": {SEED["train_steps"]}' not in log.read_text(encoding="utf-8"):
        raise BenchError(f"The seed's training did not make its steps; log: {log}")
    return seconds
