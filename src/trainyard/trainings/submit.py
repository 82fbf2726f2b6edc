"""Submission of a run: checks against the cluster, and protection against simultaneous submissions.

A dry run of the creation comes first, before the current object of the run is deleted.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from ..core.errors import TrainyardError
from ..core.waiter import CLOCK, Clock, Pauses, pausing_until, slept
from ..kube.api import Api, KubeError, Object, describe
from ..kube.apply import RETRY_SECONDS, PatientApi
from . import record
from .gpu_requests import gpu_faults
from .jobset import run_object
from .model import Training
from .names import API_VERSIONS, NAME_LABEL
from .pod_logs import PodLogs, kept_logs
from .pods import RELEASE_SECONDS
from .ports_probe import left_behind
from .run_state import attempt_of, ended, grace, live_object, program_of, workload_of

QUOTA = "exceeded quota: "
"""Part of the message of an exhausted quota. The object that is deleted next releases its share."""


def rehearse(api: Api, obj: Object) -> None:
    """Check by a dry run that the API server accepts an object, whose name may be in use.

    The server runs all admission plugins and policies first and checks the name last, so status 409 means acceptance.
    Under another name the object would violate the policy that its labels contain its name.

    :raises KubeError: the server refuses the object or does not answer; nothing was changed.
    """
    try:
        api.create(obj, dry_run=True)
    except KubeError as error:
        if error.status == 409 or (error.status == 403 and QUOTA in error.message):
            return
        raise KubeError(
            f"A new attempt at the run {obj['metadata']['name']} cannot be created: {error.message}",
            status=error.status,
            remedy=error.remedy or "Nothing was changed.",
            final=error.final,
        ) from error


CONTROLLER_SECONDS = 120.0
"""Seconds that the JobSet controller's webhook may take to answer after its installation."""


def new_attempt() -> str:
    """Return the name of a submission: its time, and a random part that distinguishes simultaneous ones."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def runners(training: Training) -> list[Object]:
    """Return the objects of all kinds that may run this run, because another topology has another kind."""
    meta = {"name": training.name, "namespace": training.namespace}
    return [{"apiVersion": version, "kind": kind, "metadata": meta} for kind, version in API_VERSIONS.items()]


def refuse_another_workload(training: Training, *there: Object | None) -> None:
    """Refuse a run whose name belongs to another workload, because the name comes with the run's files.

    :param there: the live object and the record of the run.
    :raises TrainyardError: one of them belongs to another workload.
    """
    for obj in there:
        other = workload_of(obj)
        if other and other != training.workload:
            raise TrainyardError(
                f"The run {training.name} belongs to the workload {other}, and not to {training.workload}.",
                remedy="Set another name (run), or delete that one: playbooks/train_stop.yml "
                f"-e run={training.name} -e confirm={training.name} -e delete=true.",
            )


def refuse_another_program(training: Training, kept: Object | None, *, fresh: bool) -> None:
    """Refuse another program for a run named after its code folder: it would continue from the first one's checkpoints.

    :param kept: the record of the run.
    :param fresh: whether the run starts over.
    :raises TrainyardError: the record belongs to another or an unknown program.
    """
    if kept and training.program and not training.named and not fresh and program_of(kept) != training.program:
        raise TrainyardError(
            f"The run {training.name} is recorded for another program, with another code folder or another command.",
            remedy=f"Name the run: run={training.name} continues with the existing files, and another name has its "
            "own. Or start over with resume=fresh.",
        )


def refuse_what_has_no_place(api: Api, training: Training, *, planning: bool = False) -> None:
    """Refuse a training whose pods would wait forever or fail at start.

    They would wait for more GPUs per pod than any node has, for a missing Secret, or for a missing claim. They would
    fail with a CUDA version that a node's driver is too old for.

    :param planning: check mode, in which the claims of the site's storage do not exist yet.
    :raises TrainyardError: lists all faults.
    """
    faults = [*_gpu_faults(api, training), *_secret_faults(api, training)]
    if not planning:
        faults += _claim_faults(api, training)
    if faults:
        raise TrainyardError(
            f"The training {training.name} cannot start: {'; '.join(faults)}.", remedy="Nothing was changed."
        )


def _gpu_faults(api: Api, training: Training) -> Iterator[str]:
    if any(role.gpus for role in training.roles.values()):
        yield from gpu_faults(training, api.list("v1", "Node"))


def _secret_faults(api: Api, training: Training) -> Iterator[str]:
    wanted = {
        (str(value["secret"]), str(value["key"]))
        for role in training.roles.values()
        for value in role.env.values()
        if isinstance(value, Mapping)
    }
    for name in sorted({name for name, _ in wanted}):
        found = api.get("v1", "Secret", name, training.namespace)
        for key in sorted(key for secret, key in wanted if secret == name):
            if found is None or key not in (found.get("data") or {}):
                missing = "there is no Secret" if found is None else f"the key {key} is missing in the Secret"
                yield f"{missing} {training.namespace}/{name}"
                break


def _claim_faults(api: Api, training: Training) -> Iterator[str]:
    named = {volume.claim for role in training.roles.values() for volume in role.volumes} | {training.data_claim}
    for name in sorted(filter(None, named)):
        if api.get("v1", "PersistentVolumeClaim", name, training.namespace) is None:
            yield f"there is no claim {training.namespace}/{name}"
    files = training.logs.claim
    if files and api.get("v1", "PersistentVolumeClaim", files, training.namespace) is None:
        yield (
            f"there is no claim {training.namespace}/{files} for its files (workloads_logs_claim); create it, set an "
            "existing one, or leave it empty for files on one node"
        )


def submit(
    api: Api,
    training: Training,
    live: Object | None,
    resume: str,
    say: Callable[[str], None],
    *,
    log_dir: str,
    clock: Clock = CLOCK,
) -> str:
    """Create the object of a run, in place of one that has ended or may be ended.

    :param live: the current object of the run; no other object is deleted.
    :param log_dir: folder on the controller for the logs of the previous attempt, which are deleted with its pods.
    :return: the attempt.
    :raises TrainyardError: another user has submitted the run in the meantime.
    """
    work = replacing(
        api, training.namespace, training.name, live, partial(run_object, training, resume=resume), say,
        log_dir=log_dir, left=left_behind(training), clock=clock,
    )  # fmt: skip
    attempt = slept(work, clock)
    record.keep(api, training, record.submitted(training, attempt), clock)
    say(f"training {training.name}: submitted")
    return attempt


def replacing(
    api: Api,
    namespace: str,
    name: str,
    live: Object | None,
    make: Callable[[str], Object],
    say: Callable[[str], None],
    *,
    log_dir: str = "",
    left: Sequence[Object] = (),
    kinds: Collection[str] = tuple(API_VERSIONS),
    clock: Clock = CLOCK,
) -> Pauses[str]:
    """Create the object of a new attempt in place of the current object of a run; see `submit`.

    Yield the pauses in between.

    :param make: attempt -> the object.
    :param log_dir: as in `submit`; empty to keep no logs.
    :param left: further objects to delete with the previous attempt.
    :param kinds: kinds of objects that may run it.
    :raises KubeError: the API server would refuse the new object; the current one was not changed.
    """
    api = PatientApi(api, clock)
    place = _Place(api, namespace, name, kinds)
    if live:
        meta = live["metadata"]
        rehearse(api, make(new_attempt()))
        if log_dir:
            PodLogs(api, kept_logs(log_dir, namespace, name, attempt_of(live))).read_all(place.pods())
        if not ended(live):
            say(f"training {name}: stopping the previous attempt, which saves first")
        try:
            api.delete(live["apiVersion"], live["kind"], meta["name"], meta["namespace"], uid=meta.get("uid", ""))
        except KubeError as error:
            raise place.lost() if error.status == 409 else error from error
    yield from pausing_until(
        place.left,
        lambda left: not left,
        what=f"what is left of the run {name} to be gone",
        timeout=grace(live) + RELEASE_SECONDS,
        interval=0.5,
        show=lambda left: ", ".join(map(describe, left)),
        clock=clock,
    )
    for each in left:
        api.delete(each["apiVersion"], each["kind"], each["metadata"]["name"], namespace, grace=0)
    attempt = new_attempt()
    yield from _create(api, make(attempt), place, attempt, clock)
    return attempt


@dataclass(frozen=True)
class _Place:
    """The place of a run in the cluster."""

    api: Api
    namespace: str
    name: str
    kinds: Collection[str]

    def live(self) -> Object | None:
        return live_object(self.api, self.namespace, self.name, self.kinds)

    def pods(self) -> list[Object]:
        return self.api.list("v1", "Pod", self.namespace, labels=f"{NAME_LABEL}={self.name}")

    def left(self) -> list[Object]:
        """Return the remaining objects of the previous attempt.

        :raises TrainyardError: another user has submitted a new attempt.
        """
        live = self.live()
        if live and not live["metadata"].get("deletionTimestamp"):
            raise self.lost()
        return [*([live] if live else []), *self.pods()]

    def lost(self) -> TrainyardError:
        other = attempt_of(self.live()) or "unknown"
        return TrainyardError(
            f"Another call submitted the run {self.name} at the same time (attempt {other}); that attempt continues.",
            remedy="Run this again to follow it, or set another name (run).",
        )


def _create(api: Api, obj: Object, place: _Place, attempt: str, clock: Clock) -> Pauses[None]:
    """Create an object exactly once. After a lost response, check whether the object exists."""
    deadline = clock.monotonic() + CONTROLLER_SECONDS
    while True:
        try:
            api.create(obj)
            return
        except KubeError as error:
            if error.status == 409:
                if attempt_of(place.live()) == attempt:
                    return
                raise place.lost() from error
            if not error.transient or clock.monotonic() + RETRY_SECONDS > deadline:
                raise
        yield RETRY_SECONDS
