"""Follow a submitted training to its end: progress, logs, result and record.

Parts: the time limits of a run; the follower. One time limit is for the start of every attempt, the other one in total.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.errors import TrainyardError
from ..core.waiter import CLOCK, Clock
from ..kube.api import Api, KubeError
from ..kube.apply import OUTAGE_SECONDS, PatientApi
from . import record, run_state
from .crashes import Crashes
from .gpu_requests import missing_gpus
from .kept_logs import KeptLogs
from .log_events import ERROR_RATES, idle_gpus, last, outcome, progress_line, summary
from .model import Training
from .names import API_VERSIONS
from .pod_logs import PodLogs, kept_logs
from .pods import RELEASE_SECONDS
from .ports_probe import is_tried, probe_ports
from .probe import IsolationProbe
from .roles import EXIT_BOUND, EXIT_DIVERGED, EXIT_REFUSED, EXIT_VOLUME
from .watch import RunView


class Bounds:
    """The time limits that a follower checks. The cluster itself enforces `timeout` of each attempt.

    :param start: seconds within which all pods must run, and again after each restart of the set. Pulls do not count.
    :param total: seconds from submission to end; 0 for no limit.
    :param now: seconds on a monotonic clock.
    :param age: seconds since the submission, for a run that was submitted earlier.
    """

    def __init__(self, start: int, total: int, now: float, age: float = 0.0) -> None:
        self._start, self._total, self._begin = start, total, now - age
        self._waiting_since: float | None = now
        self._restarts = 0
        self._step: int | None = None

    def broken(self, now: float, *, all_run: bool, restarts: int, step: int | None, pulls: bool = False) -> str:
        """Return why the run must be given up; empty if no limit is exceeded.

        A pod that does not start counts only while the run makes no steps. An unschedulable worker must not end a run
        that makes progress without it.

        :param now: seconds on the same clock as at the start.
        :param all_run: whether every pod of the run has started.
        :param restarts: number of restarts of the whole set so far.
        :param step: the chief's last step; None before the first.
        :param pulls: whether a node is pulling an image for a pod. This time does not count.
        """
        if self._total and now - self._begin > self._total:
            return f"it did not end within total_timeout, {self._total} s"
        if restarts != self._restarts or step != self._step or pulls or self._waiting_since is None:
            self._waiting_since = now
        self._restarts, self._step = restarts, step
        if all_run:
            self._waiting_since = None
            return ""
        if now - self._waiting_since > self._start:
            return f"not all pods ran within start_timeout, {self._start} s"
        return ""


SAY_SECONDS = 2.0

REMEDIES = {
    EXIT_REFUSED: "The training refused its input; its last line gives the reason. Change workloads_trainings.",
    EXIT_BOUND: "Raise train_steps, or lower accuracy_bound, in workloads_trainings.",
    EXIT_DIVERGED: "The loss is no longer a finite number: lower learning_rate in workloads_trainings.",
    EXIT_VOLUME: "Free space on the run's volume, or repair what its last line names. Run this again to continue from "
    "the last checkpoint.",
    75: "The run made no progress: see the logs of the other roles, and the state of their nodes.",
    137: "It was killed, most often for memory: raise limits.memory in workloads_trainings.",
}


@dataclass(frozen=True)
class Settings:
    """Settings of how a run is executed and followed, as opposed to what it does.

    :param log_dir: folder on the controller for logs, with a folder for each run and attempt.
    :param isolation_probe: whether the isolation probe, a pod outside the run, tries its port during the training.
    :param control: `host,port` that the isolation probe must reach.
    :param token_dir: folder on the controller for the tokens of services, one file each, readable by its owner only.
    :param planning: check mode.
    :param explain: takes name and namespace of a run, and returns why it failed or does not start: as text, and in the
        form of its record. Both may be empty.
    """

    log_dir: str
    isolation_probe: bool = True
    control: str = "kubernetes.default.svc,443"
    token_dir: str = ""
    planning: bool = False
    explain: Callable[[Api, str, str], tuple[str, dict[str, Any]]] = lambda *_: ("", {})


class Follower:
    """The follower of one run.

    :param say: shows a line of progress to the user.
    """

    def __init__(
        self, api: Api, training: Training, settings: Settings, say: Callable[[str], None], clock: Clock = CLOCK
    ) -> None:
        self._api = api
        self._training = training
        self._settings = settings
        self._say = say
        self._clock = clock

    def follow(self, attempt: str, *, submitted: bool) -> dict[str, Any]:
        """Follow the run to its end, record it and return its result.

        :param submitted: whether it was just submitted; else its duration is taken from the cluster's times.
        :raises TrainyardError: the run failed, did not start, or did not end in time; logs are quoted and kept.
        """
        training, settings = self._training, self._settings
        logs = PodLogs(self._api, kept_logs(settings.log_dir, training.namespace, training.name, attempt))
        view, kept = RunView(self._api, training, logs, self._clock), logs.kept
        begin = self._clock.monotonic()
        with IsolationProbe(
            self._api, training, control=settings.control, enabled=settings.isolation_probe, clock=self._clock
        ) as probe:
            self._until_ended(view, attempt, begin, kept, probe)
            seconds = round(self._clock.monotonic() - begin, 1) if submitted else view.seconds()
            view.keep_logs()
            evidence = probe.evidence(view.in_place)
        if training.endless and not view.condition("Completed"):
            return self._record(view, attempt, record.RUNNING, isolation=evidence)
        self._release(view, kept)
        if missing := self._unread(view):
            raise self._unproven(view, attempt, missing, isolation=evidence, logs=kept.paths)
        found = summary(view.chief, training.flags)
        found["result"], why = outcome(view.in_place, training.success)
        if why:
            hint = f". The last event that was not understood: {view.refused}" if view.refused else ""
            raise self._failure(view, kept, why + hint)
        if settings.isolation_probe and is_tried(training):
            evidence = probe_ports(self._api, training, settings.control, self._clock)
        more = {"isolation": evidence, "released": True, "apply_to_completion_seconds": seconds, "logs": kept.paths}
        result = self._record(view, attempt, found["result"], **more)
        learned = f", accuracy {found['accuracy']}" if found["accuracy"] is not None else ""
        learned += "".join(f", {name.replace('_', ' ')} {found[name]}" for name in ERROR_RATES if name in found)
        idle = idle_gpus(found)
        on = f", on the CPU: {idle}" if idle else ""
        self._say(f"training {training.name}: {found['result']}{learned}, {seconds} s{on}")
        return result

    def _record(self, view: RunView, attempt: str, result: str, **more: Any) -> dict[str, Any]:
        """Record the current state of the run and return the record."""
        training = self._training
        known = {
            **record.submitted(training, attempt),
            **summary(view.chief, training.flags),
            "result": result,
            "roles": view.roles(),
            "restarts": view.restarts,
            **({"refused_event": view.refused} if view.refused else {}),
            **more,
        }
        if begun := run_state.created(view.live):
            known["submitted_at"] = begun
        if result != record.RUNNING:
            known["ended_at"] = record.now()
        record.keep(self._api, training, known, self._clock)
        return known

    def _until_ended(self, view: RunView, attempt: str, begin: float, kept: KeptLogs, probe: IsolationProbe) -> None:
        """Refresh until the run has ended (an endless one: until its first step)."""
        training = self._training
        while not view.known:
            view.refresh()
        bounds = Bounds(training.start_timeout, training.total_timeout, begin, view.age())
        say = _Pace(self._say, f"training {training.name}: ", self._clock)
        restarts, crashes = 0, Crashes()
        while not view.condition("Completed"):
            view.refresh()
            if run_state.attempt_of(view.live) != attempt:
                raise self._stopped(attempt)
            if view.restarts > restarts:
                restarts = view.restarts
                say(f"restarted, {view.counted_restarts} of {training.max_restarts}", at_once=True)
            if failed := view.condition("Failed"):
                raise self._failure(view, kept, f"{failed.get('reason')}: {failed.get('message')}")
            step = last(view.chief, "step")
            if not step and (error := crashes.repeated(view.pods.values(), kept.text)):
                raise self._given_up(view, kept, f"it ended twice with the same error before its first step: {error}")
            probe.watch(view.in_place)
            say(progress_line(step) if step and view.all_started() else view.states())
            if training.endless and step:
                return
            now = self._clock.monotonic()
            states = {"all_run": view.all_started(), "pulls": view.pulls()}
            why = bounds.broken(now, restarts=restarts, step=step.get("step"), **states)
            if why:
                raise self._given_up(view, kept, f"{why}: {view.states()}{self._gpus(view)}")

    def _stopped(self, attempt: str) -> TrainyardError:
        """Return the error for a run that was stopped or deleted, with user and time if they are recorded."""
        training = self._training
        kept = record.read(record.find(PatientApi(self._api, self._clock), training.namespace, training.name))
        said = kept.get("stopped_by") if kept.get("attempt") == attempt else None
        whom = f"by {said} at {kept.get('stop_asked_at', 'an unknown time')}" if said else "or deleted by another user"
        return TrainyardError(
            f"The run {training.name} (attempt {attempt}) was stopped {whom}.",
            remedy="Run this again, or choose Continue in the console, to continue from its last checkpoint.",
        )

    def _release(self, view: RunView, kept: KeptLogs) -> None:
        """Wait until no pod of the run holds resources."""
        deadline = self._clock.monotonic() + run_state.grace(view.live) + RELEASE_SECONDS
        while view.unreleased():
            if self._clock.monotonic() > deadline:
                raise self._failure(view, kept, f"these pods did not end with the run: {', '.join(view.unreleased())}")
            view.refresh()

    def _unread(self, view: RunView) -> str:
        """Return what cannot be read of a run's report of its end; empty if it was read.

        Retry for `OUTAGE_SECONDS`, because the node or the API server may return soon.
        """
        if not self._training.says_its_end:
            return ""
        deadline = self._clock.monotonic() + OUTAGE_SECONDS
        while view.unread and self._clock.monotonic() < deadline and view.read_decider():
            self._clock.sleep(SAY_SECONDS)
        return view.unread

    def _unproven(self, view: RunView, attempt: str, missing: str, **more: Any) -> TrainyardError:
        """Return the error for a run that has ended with an unknown result: neither a success nor a failure."""
        self._record(view, attempt, record.UNKNOWN, why=missing, **more)
        return TrainyardError(
            f"Training {self._training.name} has ended with an unknown result: {missing}.",
            remedy="Run this again when that node answers, to read the log. If the pod is permanently gone, this "
            "continues from the last checkpoint, which reports the result again.",
        )

    def _given_up(self, view: RunView, kept: KeptLogs, why: str) -> TrainyardError:
        """Return the error for a run that exceeded a limit. Its object is deleted, so that it holds no resources."""
        error = self._failure(view, kept, why)
        kind, uid = self._training.shape.back_end, (view.live or {}).get("metadata", {}).get("uid", "")
        place = (API_VERSIONS[kind], kind, self._training.name, self._training.namespace)
        try:
            PatientApi(self._api, self._clock).delete(*place, uid=uid)
        except KubeError as refused:
            # Another user has replaced the object; the new one must not be deleted.
            if refused.status != 409:
                raise
        return error

    def _gpus(self, view: RunView) -> str:
        """Return where the cluster's GPUs are if pods wait for one; else empty."""
        return missing_gpus(PatientApi(self._api, self._clock), view.present().values())

    def _failure(self, view: RunView, kept: KeptLogs, why: str) -> TrainyardError:
        view.keep_logs()
        # Explain before any of its objects is deleted.
        words, cause = self._settings.explain(self._api, self._training.name, self._training.namespace)
        roles = view.roles()
        warnings = view.warnings()
        code = roles.get(self._training.deciding)
        remedy = REMEDIES.get(code, "") if isinstance(code, int) else ""
        said = {"why": why, "isolation": {}, "logs": kept.paths, **({"cause": cause} if cause else {})}
        self._record(view, run_state.attempt_of(view.live), record.FAILED, **said)
        parts = [
            f"Training {self._training.name} failed: {why}",
            f"exit codes: {roles}",
            words,
            *warnings,
            kept.tails(),
        ]
        return TrainyardError(
            "\n".join(part for part in parts if part) + "\n",
            remedy=remedy,
            logs=kept.paths,
            roles=roles,
            cluster_events=warnings,
        )


class _Pace:
    """A filter that shows a line if it differs from the previous one, at most every `SAY_SECONDS`."""

    def __init__(self, say: Callable[[str], None], prefix: str, clock: Clock) -> None:
        self._say, self._prefix, self._last, self._at = say, prefix, "", float("-inf")
        self._clock = clock

    def __call__(self, line: str, *, at_once: bool = False) -> None:
        now = self._clock.monotonic()
        if line != self._last and (at_once or now - self._at >= SAY_SECONDS):
            self._say(self._prefix + line)
            self._last, self._at = line, now
