"""A service on a cluster: a Deployment that runs until it is stopped, protected by a token that is created once."""

from __future__ import annotations

import base64
import os
import secrets
from functools import partial

from ..core.errors import TrainyardError, WaitError
from ..core.plan import MISSING, Change, Plan, Step
from ..kube.api import Object
from ..kube.apply import Wait, is_met, plan_objects, retry, wait_for
from ..kube.pod_log import last_lines
from . import record
from .foreign_objects import guard, refuse_foreign
from .gpu_requests import missing_gpus
from .jobset import run_object, spec_hash
from .names import NAME_LABEL
from .objects import collector_binding, of_run, surroundings
from .pod_logs import PodLogs, kept_logs
from .pod_places import newest, pod_state, started
from .run import Run, run_subject
from .run_state import attempt_of, hash_of, live_object
from .submit import new_attempt, refuse_another_workload, refuse_what_has_no_place
from .template import TOKEN_KEY, token_secret

TOKEN_BYTES = 32
RETRY_SECONDS = 60.0
LAST_LINES = 12


class Service(Run):
    """One service on one cluster."""

    def plan(self, *, restart: bool = False, may_end: bool = False, resume: str = "auto", wait: bool = True) -> Plan:
        """Return the steps to a service that answers; none if it answers or runs with another description.

        :param restart: create a new pod in any case.
        :param may_end: change a service with another description, which ends its current work.
        :param resume: ignored, because a service always keeps its files.
        :param wait: wait until the service answers.
        :raises TrainyardError: the name belongs to a run of another workload, or to an object of a user; or the pod
            could never start.
        """
        training = self._training
        found = record.find(self._api, training.namespace, training.name)
        live = live_object(self._api, training.namespace, training.name)
        refuse_foreign(live, found)
        refuse_another_workload(training, live, found)
        known = {"name": training.name, **record.read(found)}
        if live and hash_of(live) != spec_hash(training) and not (may_end or restart):
            self.left_alone = f"{training.name} runs with another description, and was left unchanged"
            self.result = known
            return plan_objects(self._api, [collector_binding(training)], guard=guard)
        self._training = training = self._where_the_files_are(needed=True)
        refuse_what_has_no_place(self._api, training, planning=self._settings.planning)
        same = live is not None and hash_of(live) == spec_hash(training) and not restart
        attempt = attempt_of(live) if same else new_attempt()
        # Hide both from the diff: the pod's environment may contain secrets.
        hidden = ("Secret", "Deployment")
        around = plan_objects(self._api, surroundings(training), hidden=hidden, guard=guard)
        served = plan_objects(self._api, [run_object(training, attempt)], hidden=hidden)
        steps = list(around.steps)
        if self._token() is None:
            token = Change(f"token of {training.name}", MISSING, "there")
            steps.append(Step(f"Create a token for {training.name}", self._make_token, [token]))
        # The pod would wait for its token.
        steps += served.steps
        if live and not same:
            keep_logs = partial(self._keep_logs, attempt_of(live))
            steps.insert(0, Step(f"Keep the logs of {training.name}", keep_logs))
        if not self._token_is_kept():
            kept = Change(self._token_file, "without the token", "the token")
            steps.append(Step(f"Write the token of {training.name} to {self._token_file}", self._keep_token, [kept]))
        document = {**record.submitted(training, attempt), "reach": self._reach()}
        # Recorded before the wait, because a service that never answers exists, too.
        if known.get("attempt") == attempt and known.get("result") == record.RUNNING and not known.get("why"):
            self.result = known
        else:
            self.result = document
            keep = partial(record.keep, self._api, training, document)
            noted = Change(f"record of run {training.name}", "another attempt", attempt, follows=bool(steps))
            steps.append(Step(f"Record that {training.name} runs", keep, [noted]))
        if wait and (steps or not (live and is_met(live, "RolledOut"))):
            ready = Change(run_subject(training.name), "without an answer", "ready", follows=bool(steps))
            steps.append(Step(f"Wait until {training.name} answers", partial(self._wait, attempt), [ready]))
        return Plan(steps, {**around.before, **served.before}, {**around.after, **served.after})

    def remove_plan(self) -> Plan:
        """Return the steps that delete the service, its supporting objects and its token; its files stay."""
        plan, training = super().remove_plan(), self._training
        name = token_secret(training)
        if self._token() is None:
            return plan
        delete = partial(self._api.delete, "v1", "Secret", name, training.namespace)
        return Plan([*plan.steps, Step(f"Delete Secret {name}", delete)], plan.before, plan.after)

    @property
    def _token_file(self) -> str:
        return os.path.join(self._settings.token_dir, f"{self._training.namespace}-{self._training.name}")

    def _reach(self) -> str:
        training = self._training
        port = training.decider.port
        return (
            f"kubectl --namespace {training.namespace} port-forward service/{training.name} {port}, then "
            f"http://127.0.0.1:{port}/ with the token in {self._token_file}"
        )

    def _token(self) -> str | None:
        training = self._training
        found = self._api.get("v1", "Secret", token_secret(training), training.namespace)
        value = ((found or {}).get("data") or {}).get(TOKEN_KEY)
        return base64.b64decode(value).decode() if value else None

    def _make_token(self) -> None:
        training = self._training
        meta = {"name": token_secret(training), "namespace": training.namespace, "labels": of_run(training)}
        value = base64.b64encode(secrets.token_urlsafe(TOKEN_BYTES).encode()).decode()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {TOKEN_KEY: value}}
        retry(partial(self._api.apply, secret), timeout=RETRY_SECONDS)

    def _token_is_kept(self) -> bool:
        try:
            with open(self._token_file, encoding="utf-8") as stream:
                kept = stream.read()
        except OSError:
            return False
        return kept == f"{self._token()}\n" and os.stat(self._token_file).st_mode & 0o077 == 0

    def _keep_token(self) -> None:
        """Write the token to a file on the controller that only its owner can read.

        Folder and file are restricted before the token is written, so that no other user can open it in between.
        """
        try:
            os.makedirs(self._settings.token_dir, mode=0o700, exist_ok=True)
            file = os.open(self._token_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with open(file, "w", encoding="utf-8") as stream:
                os.fchmod(stream.fileno(), 0o600)
                stream.write(f"{self._token()}\n")
        except OSError as error:
            raise TrainyardError(
                f"The token cannot be written to {self._token_file}: {error.strerror}.",
                remedy="Set another workloads_token_dir.",
            ) from error

    def _keep_logs(self, attempt: str) -> list[str]:
        """Keep the logs of an attempt's pods on the controller and return their paths."""
        training = self._training
        logs = PodLogs(self._api, kept_logs(self._settings.log_dir, training.namespace, training.name, attempt))
        logs.read_all(self._pods())
        return logs.kept.paths

    def _wait(self, attempt: str) -> None:
        training = self._training
        place = {"name": training.name, "namespace": training.namespace}
        waits = [Wait("Deployment", "RolledOut", **place), Wait("Service", "Serving", **place)]
        try:
            wait_for(self._api, waits, timeout=training.start_timeout)
        except WaitError as error:
            pods = self._pods()
            states = [part for pod in pods for part in self._told(pod)]
            words, cause = self._settings.explain(self._api, training.name, training.namespace)
            logs, gpus = self._keep_logs(attempt), missing_gpus(self._api, pods)
            self.result = {**self.result, "why": f"it does not answer: {error.message}{gpus}", "logs": logs}
            self.result |= {"cause": cause} if cause else {}
            record.keep(self._api, training, self.result)
            raise TrainyardError(
                "\n".join(
                    [
                        f"The service {training.name} does not answer. {error.message}{gpus}",
                        *filter(None, [words]),
                        *states,
                    ]
                ),
                remedy="Read its last lines. It keeps running; playbooks/train_stop.yml stops it.",
            ) from error
        self._say(f"service {training.name}: {self._reach()}")

    def _pods(self) -> list[Object]:
        labels = f"{NAME_LABEL}={self._training.name}"
        return list(newest(self._api.list("v1", "Pod", self._training.namespace, labels=labels)).values())

    def _told(self, pod: Object) -> list[str]:
        """Return the state of a pod and its last log lines."""
        state, why = pod_state(pod)
        name = pod["metadata"]["name"]
        lines: list[str] = []
        if started(pod):
            lines = last_lines(self._api.log(self._training.namespace, name, tail=LAST_LINES), LAST_LINES)
        return [f"--- {name} is {state} {why}".rstrip(), *lines]
