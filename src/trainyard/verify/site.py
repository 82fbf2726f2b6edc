"""The logic of the module `verify_site`: observe a site, judge it, and write the receipt."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ..core.plan import Plan, Step
from ..kube.api import Api, KubeError
from ..kube.certificate_requests import KubeletHost
from ..kube.connection import connect
from ..trainings.run_state import attempt_of
from ..unmanaged import rendered
from . import cluster_checks
from .access_checks import (
    Access,
    ConsoleSeen,
    Judge,
    access_warnings,
    certificate_ends,
    nothing_known,
    observe_access,
)
from .checks import SITE, RunView, SiteView, checks_of, run_checks
from .observation import Observation, RunSeen, Unread, Wanted, nothing_read, observe
from .training_checks import summary, training_warnings
from .verdict import PASS, Check, make_receipt, read_receipt, stable, table, title, write_receipt

LOOK_AGAIN_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Settings(cluster_checks.Expected):
    """The options of the module `verify_site`, documented there."""

    kubeconfig: str
    system_namespaces: Sequence[str]
    trainings: Sequence[Mapping[str, Any]]
    left_alone: Sequence[str] | None
    control_plane: Sequence[str] = ()
    recorded: Sequence[str] = ()
    accepted: Sequence[Any] = ()
    accuracy_bound: float
    receipt_path: str
    document_path: str
    started_at: float
    settle_timeout: float


class Site:
    """Judge a site once and plan the writing of its receipt.

    :param open_api: creates an API from the path of a kubeconfig; tests pass their own.
    """

    def __init__(self, settings: Settings, open_api: Callable[[str], Api] = connect) -> None:
        # Only a run of site.yml knows some values; it has saved them in the receipt.
        kept = read_receipt(settings.receipt_path)
        self._bundle_known = settings.made_images is not None
        if settings.made_images is None:
            settings = replace(settings, made_images=kept.get("made_images", {}))
        self._kept = kept.get("trainings", [])
        self._settings = settings
        self._trainings = [Wanted(**each) for each in settings.trainings]
        self._open_api = open_api
        self.receipt: dict[str, Any] = {}
        self._foreign = Judge(
            rendered.read(settings.kubeconfig),
            settings.recorded,
            settings.accepted,
            settings.control_plane,
            settings.system_namespaces,
        )
        self._access: Access = nothing_known(Unread("not read"))

    def plan(self) -> Plan:
        """Observe, judge, and plan to write the receipt and document if they differ."""
        checks, seen = self._look()
        self.receipt = self._receipt(checks, seen)
        path, document = self._settings.receipt_path, self._settings.document_path
        before, after = stable(read_receipt(path)) if path else {}, stable(self.receipt)
        steps = []
        if path and before != after:
            steps.append(Step(f"Write the receipt {path}.", partial(write_receipt, path, self.receipt)))
        if document:
            steps.append(Step(f"Write the document {document}.", partial(write_receipt, document, self.receipt)))
        return Plan(steps, before=before, after=after)

    def result(self) -> dict[str, Any]:
        """Return the result of the module."""
        return {
            "verdict": self.receipt["verdict"],
            "problems": [
                f"{title(check)}: {check['result']}: {check['detail']}"
                for check in self.receipt["checks"]
                if check["result"] != PASS
            ],
            "receipt": self.receipt,
            "table": table(self.receipt, "" if self._settings.planning else self._settings.receipt_path),
        }

    def _look(self) -> tuple[list[Check], Observation]:
        """Return the checks and their observation; repeat while each failure may settle by itself."""
        settings = self._settings
        deadline = time.monotonic() + (0 if settings.planning else settings.settle_timeout)
        try:
            api = self._open_api(settings.kubeconfig)
        except KubeError as error:
            seen = nothing_read(Unread(error.message.rstrip(".")), len(self._trainings))
            self._access = nothing_known(Unread("not read: the API server does not answer"))
            return self._judge(seen), seen
        while True:
            seen = observe(api, namespaces=settings.system_namespaces, trainings=self._trainings)
            if isinstance(seen.api, Unread):
                self._access = nothing_known(Unread("not read: the API server does not answer", seen.api.settles))
            else:
                self._access = observe_access(api, settings.console, datetime.now(UTC))
            checks = self._judge(seen)
            if not may_settle(checks) or time.monotonic() + LOOK_AGAIN_S > deadline:
                return checks, seen
            time.sleep(LOOK_AGAIN_S)

    def _judge(self, seen: Observation) -> list[Check]:
        settings, now = self._settings, datetime.now(UTC)
        # Without a bundle, the digests come from the last run of site.yml, and a training may be newer.
        own = {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": left or not self._bundle_known
            for _, run, left in self._runs(seen)
            if not isinstance(run.pods, Unread)
            for pod in run.pods
        }
        checks = checks_of(SITE, SiteView(settings, seen, self._access, self._foreign, now, own))
        for want, run, left in self._runs(seen):
            checks += run_checks(RunView(want, run, now, settings.accuracy_bound, left))
        return checks

    def _runs(self, seen: Observation) -> list[tuple[Wanted, RunSeen, bool]]:
        """Return each training, its observation, and whether it was left unchanged."""
        pairs = zip(self._trainings, seen.runs, strict=True)
        return [(want, run, self._is_left_alone(want, run)) for want, run in pairs]

    def _is_left_alone(self, want: Wanted, run: RunSeen) -> bool:
        if not run.goes_on or isinstance(run.live, Unread):
            return False
        if self._settings.left_alone is not None:
            return want.name in self._settings.left_alone
        recorded = run.record.get("description_hash")
        if recorded and want.description_hash and recorded != want.description_hash:
            return True
        place = (want.name, want.namespace, attempt_of(run.live))
        return any(
            each.get("left_alone") and (each.get("name"), each.get("namespace"), each.get("attempt")) == place
            for each in self._kept
        )

    def _receipt(self, checks: Sequence[Check], seen: Observation) -> dict[str, Any]:
        settings = self._settings
        nodes = [] if isinstance(seen.nodes, Unread) else seen.nodes
        pods = {} if isinstance(seen.pods, Unread) else seen.pods
        system = [pod for found in pods.values() for pod in found]
        now = datetime.now(UTC)
        runs = self._runs(seen)
        return make_receipt(
            checks,
            nodes=sorted(map(cluster_checks.node_row, nodes), key=lambda row: row["name"]),
            versions=cluster_checks.versions(nodes, system),
            made_images=settings.made_images or {},
            trainings=[summary(want, run, left_alone=left) for want, run, left in runs],
            warnings=[
                *cluster_checks.warnings(settings, seen),
                *access_warnings(
                    self._access,
                    settings.probes,
                    self._kubelet_hosts(),
                    now,
                    provided=str(settings.console.get("certificate_file") or ""),
                ),
                *(self._foreign.warnings(self._access.world) if self._access.serving is True else []),
                *(text for want, run, left in runs for text in training_warnings(want, run, left_alone=left)),
            ],
            measured={
                "restarts": cluster_checks.restarts(system),
                "probes": measured_probes(settings.probes),
                "steps": {want.name: run.step for want, run, _ in runs if run.step is not None},
                "certificates": {
                    name: ends.isoformat(timespec="seconds")
                    for name, ends in certificate_ends(self._access, settings.probes).items()
                },
            },
            console=self._console(),
            allowed=self._foreign.allowed(self._access.world),
            wall_seconds=round(now.timestamp() - settings.started_at, 1) if settings.started_at else None,
            written_at=now.isoformat(timespec="seconds"),
        )

    def _kubelet_hosts(self) -> dict[str, KubeletHost]:
        known = self._settings.kubelet_hosts
        return {node: KubeletHost.of(each["names"], each["addresses"]) for node, each in known.items()}

    def _console(self) -> dict[str, str] | None:
        """Return the address and login command of the console; None if there is none or it could not be read."""
        seen, wanted = self._access.console, self._settings.console
        if not wanted or not isinstance(seen, ConsoleSeen) or (seen.trouble and not seen.address):
            return None
        user = wanted.get("user") or "NAME"
        return {"console": seen.address or "trainyard console", "login": f"trainyard token {user}"}


def measured_probes(probes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the findings of the probe by node, without the fields that Ansible adds to a module's result."""
    return {
        node: {kind: finding[kind] for kind in ("dns", "service")}
        for node, finding in sorted(probes.items())
        if "dns" in finding and "service" in finding
    }


def may_settle(checks: Sequence[Check]) -> bool:
    """Return whether to observe again: checks have failed, and each of them may settle by itself."""
    wrong = [check for check in checks if check.result != PASS]
    return bool(wrong) and all(check.settles for check in wrong)
