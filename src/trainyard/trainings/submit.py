"""Submitting a run: what is refused by a look at the cluster, and how one of two submissions at once wins."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from ..core.clock import CLOCK, Clock
from ..core.errors import TrainyardError
from ..core.waiter import Pauses, pausing_until, slept
from ..kube.api import Api, KubeError, Object, describe
from ..kube.apply import RETRY_SECONDS
from ..kube.patient import PatientApi
from . import record
from .gpus import gpu_faults
from .jobset import run_object
from .model import Training
from .names import API_VERSIONS, NAME_LABEL
from .pod_logs import PodLogs, kept_logs
from .pods import RELEASE_SECONDS
from .probe import probe_objects
from .rehearsal import rehearse
from .state import attempt_of, ended, grace, live_object, program_of, workload_of

CONTROLLER_SECONDS = 120.0
"""How long the JobSet controller's webhook may take to answer after its installation."""


def new_attempt() -> str:
    """Name of a submission: its time, and what tells two at once apart."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def runners(training: Training) -> list[Object]:
    """The objects that may run the run of this name: another topology is of another kind."""
    meta = {"name": training.name, "namespace": training.namespace}
    return [{"apiVersion": version, "kind": kind, "metadata": meta} for kind, version in API_VERSIONS.items()]


def refuse_another_workload(training: Training, *there: Object | None) -> None:
    """A run's name belongs to its workload, with its files.

    :param there: what the cluster has of the run.
    :raises TrainyardError: it is of another one.
    """
    for obj in there:
        other = workload_of(obj)
        if other and other != training.workload:
            raise TrainyardError(
                f"The run {training.name} is of the workload {other}, and not of {training.workload}.",
                remedy="Choose another name (run), or delete that one: playbooks/train_stop.yml "
                f"-e run={training.name} -e confirm={training.name} -e delete=true.",
            )


def refuse_another_program(training: Training, kept: Object | None, *, fresh: bool) -> None:
    """A name that no site gave, but a folder, is for one program: another one would go on from its checkpoints.

    :param kept: the record of the run.
    :param fresh: whether the run starts over.
    :raises TrainyardError: the record is of another program, or does not say of which.
    """
    if kept and training.program and not training.named and not fresh and program_of(kept) != training.program:
        raise TrainyardError(
            f"The run {training.name} is on record for another program than this one, with another folder of code or "
            "another command.",
            remedy=f"Name the run: run={training.name} goes on with the files that are there, and another name has its "
            "own. Or start over with resume=fresh.",
        )


def refuse_what_has_no_place(api: Api, training: Training, *, planning: bool = False) -> None:
    """What would wait for ever: more GPUs in a pod than any node has, a Secret or a claim that is not there; and what
    would end at its start: CUDA that a node's driver is too old for.

    :param planning: in check mode, in which nobody has made the claims that the site's storage will have.
    :raises TrainyardError: names all of them.
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
            f"there is no claim {training.namespace}/{files} for its files (workloads_logs_claim); make it, name one "
            "that is there, or leave it empty for files on one node"
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
    """Create the object that runs a run, in the place of one that has ended or may be ended.

    :param live: what runs it now; nothing else is deleted.
    :param log_dir: folder on the controller for the logs of the attempt before, which go with its pods.
    :return: the attempt.
    :raises TrainyardError: somebody else has submitted it meanwhile.
    """
    work = replacing(
        api, training.namespace, training.name, live, partial(run_object, training, resume=resume), say,
        log_dir=log_dir, left=probe_objects(training), clock=clock,
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
    """Create the object of a new attempt in the place of what runs a run; see `submit`. Gives the pauses in between.

    :param make: attempt -> the object.
    :param log_dir: empty where logs are not kept.
    :param left: what goes with the attempt before, besides.
    :param kinds: of objects that may run it.
    :raises KubeError: the API server would refuse the new object; what runs it now is as it was.
    """
    api = PatientApi(api, clock)
    place = _Place(api, namespace, name, kinds)
    if live:
        meta = live["metadata"]
        rehearse(api, make(new_attempt()))
        if log_dir:
            PodLogs(api, kept_logs(log_dir, namespace, name, attempt_of(live))).read_all(place.pods())
        if not ended(live):
            say(f"training {name}: the run before is told to save and to stop")
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
    """Where a run is."""

    api: Api
    namespace: str
    name: str
    kinds: Collection[str]

    def live(self) -> Object | None:
        return live_object(self.api, self.namespace, self.name, self.kinds)

    def pods(self) -> list[Object]:
        return self.api.list("v1", "Pod", self.namespace, labels=f"{NAME_LABEL}={self.name}")

    def left(self) -> list[Object]:
        """What is left of the attempt before.

        :raises TrainyardError: a new one has come.
        """
        live = self.live()
        if live and not live["metadata"].get("deletionTimestamp"):
            raise self.lost()
        return [*([live] if live else []), *self.pods()]

    def lost(self) -> TrainyardError:
        other = attempt_of(self.live()) or "unknown"
        return TrainyardError(
            f"The run {self.name} was submitted by somebody else at this moment (attempt {other}), and theirs goes on.",
            remedy="Call this again to follow it, or choose another name (run).",
        )


def _create(api: Api, obj: Object, place: _Place, attempt: str, clock: Clock) -> Pauses[None]:
    """Create it once; an answer that was lost on the way is made good by looking."""
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
