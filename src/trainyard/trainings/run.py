"""Run a training on a cluster: read its state, plan the next action, and submit it.

Parts: the next action, from the record and the live object; the project's code of an earlier release; the run.

The hash of a run includes its code image, which changes with every release of the project. If a run differs in nothing
else, the plan does not repeat it. A repetition would cost days of GPU time and prove nothing new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..core.errors import TrainyardError
from ..core.plan import Change, Plan, Step
from ..core.progress import Progress
from ..core.untrusted import at, items, line
from ..core.waiter import CLOCK, Clock, wait_until
from ..kube.api import Api, Object, describe
from ..kube.apply import PatientApi, plan_objects
from . import record
from .data_import import DataImport
from .follow import Follower, Settings
from .foreign_objects import guard, is_foreign, refuse_foreign
from .jobset import spec_hash
from .model import Logs, Training
from .names import API_VERSIONS, MANIFEST_KEY, NAME_LABEL
from .objects import COLLECTOR, DEFAULT_DENY, collector_binding, logs_volume, node_of, result_record, surroundings
from .pod_places import newest
from .pods import RELEASE_SECONDS
from .ports_probe import left_behind
from .probe import repeat
from .run_state import attempt_of, ended, grace, hash_of, live_object
from .submit import refuse_another_program, refuse_another_workload, refuse_what_has_no_place, runners, submit
from .template import CODE_VOLUME

KEEP, ADOPT, SUBMIT, LEAVE, PROBE = "keep", "adopt", "submit", "leave", "probe"


def decide(
    wanted: str,
    recorded: str | None,
    live: str | None,
    *,
    ended: str | None,
    endless: bool,
    proven: bool = True,
    replace: bool = False,
) -> str:
    """Return the next action for a run with the hash `wanted`.

    :param recorded: hash of the run whose success is recorded.
    :param live: hash of the existing JobSet or Job.
    :param ended: `Completed` or `Failed` for an existing object that has ended, else None.
    :param endless: whether the run has no last step.
    :param proven: whether the record has all evidence that the run should provide.
    :param replace: end a run that is running with another description. Otherwise it is left unchanged.
    """
    goes_on = live is not None and ended is None
    if goes_on and live != wanted:
        return SUBMIT if replace else LEAVE
    if goes_on:
        return KEEP if endless else ADOPT
    if recorded == wanted:
        return KEEP if proven else PROBE
    if live == wanted and ended == "Completed":
        return ADOPT  # completed without a follower: record it
    return SUBMIT


def code_of(runner: Mapping[str, Any] | None) -> str:
    """Return the code image that the object of a run, or its kept manifest, mounts; empty for none."""
    jobs = [at(each, "template", "spec") for each in items(at(runner, "spec", "replicatedJobs"))]
    for job in jobs or [at(runner, "spec")]:
        for volume in items(at(job, "template", "spec", "volumes")):
            if at(volume, "name") == CODE_VOLUME:
                return line(at(volume, "image", "reference"))
    return ""


def as_it_ran(training: Training, known: Collection[str | None], codes: Iterable[str]) -> Training:
    """Return the training with the code image that it ran with, if the requested one differs in nothing else.

    :param known: hashes of the ended object and of the recorded success of the run; None for none.
    :param codes: candidate code images, read from the cluster. An invented one cannot match, because a hash is the
        SHA-256 of everything that decides what a run does.
    :return: the training unchanged if it is another run or has its own code folder.
    """
    if training.program or not training.code or spec_hash(training) in known:
        return training
    earlier = (replace(training, code=each) for each in codes if each)
    return next((each for each in earlier if spec_hash(each) in known), training)


def run_subject(name: str) -> str:
    """Return the subject of the change that a run must run, or run with another description."""
    return f"run of {name}"


def _record_of(name: str, before: str) -> Change:
    """Return a change of the record of a run, which does not change the run itself."""
    return Change(f"record of run {name}", before, "as the inventory has it")


class Run:
    """One training on one cluster.

    :param progress: shows lines to the user while the plan is executed.
    """

    def __init__(
        self, api: Api, training: Training, settings: Settings, progress: Progress, clock: Clock = CLOCK
    ) -> None:
        self._api = api
        self._training = training
        self._settings = settings
        self._say = progress.say
        self._clock = clock
        self.result: dict[str, Any] = {}
        self.left_alone = ""
        """Reason why the plan leaves an existing run unchanged; empty if it does not."""

    def plan(self, *, restart: bool = False, may_end: bool = False, resume: str = "auto", wait: bool = True) -> Plan:
        """Return the steps to a finished run; none if its success is recorded, or it runs with another description.

        :param restart: start from the first step in any case.
        :param may_end: end a running run with another description; the new one continues from its files.
        :param resume: with `fresh` a new submission starts over, and a recorded success is repeated.
        :param wait: follow the run to its end; else the plan ends with the submission.
        :raises TrainyardError: the name belongs to a run of another workload or program, or to an object of a user;
            or a pod could never start.
        """
        training = self._training
        found = record.find(self._api, training.namespace, training.name)
        live = live_object(self._api, training.namespace, training.name)
        refuse_foreign(live, found)
        refuse_another_workload(training, live, found)
        refuse_another_program(training, found, fresh=restart or resume == "fresh")
        result = {"name": training.name, **record.read(found)}
        done = hash_of(found) if record.succeeded(result) else None
        goes_on = live is not None and ended(live) is None
        # A running run of another release is left unchanged, like one with another description.
        ran = training if goes_on else self._as_it_ran(live, found, done)
        wanted = spec_hash(ran)
        choice = SUBMIT if restart or (resume == "fresh" and not goes_on) else decide(
            wanted, done, hash_of(live),
            ended=ended(live), endless=training.endless, replace=may_end,
            proven=self._proven(result),
        )  # fmt: skip
        if choice == ADOPT and goes_on and not wait:
            choice = KEEP
        if choice == ADOPT and self._is_beyond_proof(result, live):
            choice = SUBMIT
        if choice == LEAVE:
            # Its supporting objects stay unchanged, too, except the binding with which it survives the loss of a node.
            self.left_alone = f"{training.name} is running with another description, and was left unchanged"
            self.result = {**result, "result": record.RUNNING}
            return plan_objects(self._api, [collector_binding(training)], guard=guard)
        if choice != SUBMIT:
            self._training = ran
        self._training = training = self._where_the_files_are(needed=choice in (ADOPT, SUBMIT))
        if choice == SUBMIT:
            refuse_what_has_no_place(self._api, training, planning=self._settings.planning)
        around = plan_objects(self._api, surroundings(training), guard=guard)
        if choice == KEEP and not goes_on:
            return self._kept(around, result)
        if choice == KEEP:
            return self._kept_running(around, result, attempt_of(live))
        subject = run_subject(training.name)
        if choice == PROBE:
            probe = partial(self._probe, result)
            # The states of the plan do not differ for an ended run, so the step names the change.
            unproven = Change(subject, "without a proof of its isolation", "proven")
            step = Step(f"Repeat the isolation probe of the training {training.name}", probe, [unproven])
        elif choice == ADOPT:
            adopt = partial(self._follow, attempt_of(live), submitted=False)
            step = Step(f"Wait for training {training.name}, which is already submitted", adopt)
        else:
            do = partial(self._submit, live, "fresh" if restart else resume, wait=wait)
            step = Step(f"{'Run' if wait else 'Submit'} training {training.name}: {training.size}", do)
        end = "Completed" if wait and not training.endless else None
        steps = [step]
        if choice == SUBMIT and training.data_import:
            bring = DataImport(self._api, training, training.data_import, self._say, self._clock).bring
            what = f"Import {training.data_import.url} onto the claim {training.data_claim}"
            steps.insert(0, Step(f"{what} as {training.data_folder}", bring))
        return Plan(
            [*around.steps, *steps],
            {**around.before, subject: {"hash": hash_of(found), "ended": ended(live)}},
            {**around.after, subject: {"hash": spec_hash(training), "ended": end}},
        )

    def _as_it_ran(self, live: Object | None, found: Object | None, done: str | None) -> Training:
        """Return the training with the code image of the existing run if only the release of the project differs.

        :param done: hash of the run whose success is recorded.
        """
        recorded = line(record.read(found).get("code"))
        codes = (code_of(live), code_of(record.kept(found, MANIFEST_KEY)), recorded)
        return as_it_ran(self._training, (hash_of(live), done), codes)

    def _is_beyond_proof(self, result: dict[str, Any], live: Object | None) -> bool:
        """Return whether a run has ended with an unknown result, and the pod whose log has it is gone.

        Such a run is submitted again and continues from its last checkpoint.
        """
        if result.get("result") != record.UNKNOWN or result.get("attempt") != attempt_of(live):
            return False
        labels = f"{NAME_LABEL}={self._training.name}"
        pods = self._api.list("v1", "Pod", self._training.namespace, labels=labels)
        return self._training.deciding not in newest(pods)

    def _kept(self, around: Plan, result: dict[str, Any]) -> Plan:
        """Return the plan for a recorded success. Its description may differ in ways that do not change the run."""
        digest = self._training.description_hash
        if not digest or result.get("description_hash") == digest:
            self.result = result
            return around
        self.result = {**result, "description_hash": digest}
        keep = partial(record.keep, self._api, self._training, self.result, self._clock)
        changes = [_record_of(self._training.name, "another description")]
        step = Step(f"Record the description of the training {self._training.name}", keep, changes)
        return Plan([*around.steps, step], around.before, around.after)

    def _kept_running(self, around: Plan, result: dict[str, Any], attempt: str) -> Plan:
        """Return the plan for a running run that is not followed. Its submitter may have died before recording it."""
        if result.get("attempt") == attempt:
            self.result = {**result, "result": record.RUNNING}
            return around
        self.result = record.submitted(self._training, attempt)
        step = Step(
            f"Record that the training {self._training.name} is running",
            partial(record.keep, self._api, self._training, self.result),
            [_record_of(self._training.name, "another attempt")],
        )
        return Plan([*around.steps, step], around.before, around.after)

    def remove_plan(self) -> Plan:
        """Return the steps that delete the run and its objects.

        The namespace, the files of the volume, and objects of users with the same names stay.
        """
        training = self._training
        # In reverse order: the deletion of a volume waits for that of its claim.
        shared = (training.namespace, DEFAULT_DENY, COLLECTOR)
        # Include the run's own volume from before the site had shared storage.
        own_files = replace(training, logs=Logs(size="1Gi", node="-", path="/-"), tensorboard="-")
        own = [obj for obj in surroundings(own_files) if obj["metadata"]["name"] not in shared]
        objects = [*runners(training), result_record(training, {}), *left_behind(training), *reversed(own)]
        there = [obj for obj in objects if (live := self._find(obj)) and not is_foreign(live)]
        steps = [Step(f"Delete {obj['kind']} {obj['metadata']['name']}", partial(self._delete, obj)) for obj in there]
        return Plan(steps, {run_subject(training.name): "there"} if there else {}, {})

    def _submit(self, live: Object | None, resume: str, *, wait: bool) -> None:
        log_dir = self._settings.log_dir
        attempt = submit(self._api, self._training, live, resume, self._say, log_dir=log_dir, clock=self._clock)
        if wait:
            self._follow(attempt, submitted=True)
        else:
            self.result = record.submitted(self._training, attempt)

    def _follow(self, attempt: str, *, submitted: bool) -> None:
        follower = Follower(self._api, self._training, self._settings, self._say, self._clock)
        self.result = follower.follow(attempt, submitted=submitted)
        # A run that was followed from its beginning and was too short for the probe is probed by the next call.
        if not submitted and record.succeeded(self.result) and not self._proven(self.result):
            self._say(f"training {self._training.name}: the isolation probe is repeated")
            self._probe(self.result)

    def _proven(self, result: dict[str, Any]) -> bool:
        """Return whether a run has evidence of its isolation, or needs none.

        A run that was too short for the probe, or was not followed, is probed again.
        """
        if not self._settings.isolation_probe or self._training.probed is None:
            return True
        return (result.get("isolation") or {}).get("stranger_blocked") is not None

    def _probe(self, result: dict[str, Any]) -> None:
        role = self._training.probed
        assert role is not None, "a training without a port to try is proven"
        found = repeat(self._api, self._training, role, self._settings.control, self._clock)
        self.result = {**result, "isolation": found}
        record.keep(self._api, self._training, self.result, self._clock)

    def _where_the_files_are(self, *, needed: bool) -> Training:
        """Return the training with the node of its files, which is chosen once: a local volume cannot be moved.

        :param needed: whether a pod must start on that node.
        :raises TrainyardError: that node is no longer in the cluster.
        """
        training = self._training
        live = self._api.get("v1", "PersistentVolume", logs_volume(training)) if training.logs.path else None
        if live is None:
            return training
        node = node_of(live)
        if needed and self._api.get("v1", "Node", node) is None:
            raise TrainyardError(
                f"The files of the run {training.name} are on {node}, which is no longer a node of this cluster.",
                remedy=f"Bring the node back. To give up the files, run once with workloads_state=absent; the next run "
                f"has its files on {training.logs.node}. Shared storage (storage_backend) survives the loss of a node.",
            )
        return replace(training, logs=replace(training.logs, node=node))

    def _find(self, obj: Object) -> Object | None:
        meta = obj["metadata"]
        return self._api.get(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))

    def _delete(self, obj: Object) -> None:
        """Delete an object and wait until it and its dependents are gone."""
        meta = obj["metadata"]
        live = self._find(obj)
        if live is None:
            return
        patient = PatientApi(self._api, self._clock)
        patient.delete(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))
        wait_until(
            partial(patient.get, obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace")),
            lambda found: found is None,
            what=f"{obj['kind']} {meta['name']} to be gone",
            timeout=(grace(live) if obj["kind"] in API_VERSIONS else 0) + RELEASE_SECONDS,
            interval=0.5,
            show=lambda found: f"{describe(found or {})} still exists",
            clock=self._clock,
        )
