"""An API server on loopback with one run whose pods' logs grow with time, in a separate process."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from trainyard.trainings.jobset import run_object
from trainyard.trainings.model import Training
from trainyard.trainings.names import INDEX_LABEL

LINES_BEFORE = 5_000
"""Lines of every pod from before the following: an hour of a worker, a quarter of an hour of a chief."""
CHIEF_SECONDS, OTHERS_SECONDS = 0.2, 1.0
"""Interval between two lines of a log."""
STEPS = 20
"""Steps between two lines of the chief."""


class Run:
    """The served run: a pure function of the time since its start.

    :param seconds: duration of the run.
    """

    def __init__(self, training: Training, attempt: str, seconds: float) -> None:
        self.begin = time.time()
        self._end = self.begin + seconds
        made = json.loads(json.dumps(run_object(training, attempt)))
        made["metadata"] |= {"uid": "u", "creationTimestamp": _stamp(self.begin)}
        self._live = made
        self.pods = {
            pod["metadata"]["name"]: pod
            for job in made["spec"]["replicatedJobs"]
            for index in range(job["template"]["spec"]["completions"])
            for pod in [self._pod(training.name, job, index)]
        }

    def _pod(self, run: str, job: dict[str, Any], index: int) -> dict[str, Any]:
        template = job["template"]["spec"]["template"]
        name = f"{run}-{job['name']}-0-{index}-abcde"
        meta = {
            **template["metadata"],
            "name": name,
            "namespace": "trainings",
            "uid": name,
            "creationTimestamp": _stamp(self.begin),
            "resourceVersion": "1",
        }
        meta["labels"] = {**meta["labels"], INDEX_LABEL: str(index)}
        status = {"phase": "Running", "containerStatuses": [{"name": "tensorflow", "state": {"running": {}}}]}
        return {"metadata": meta, "spec": template["spec"], "status": status}

    @property
    def live(self) -> dict[str, Any]:
        done = [{"type": "Completed", "status": "True", "lastTransitionTime": _stamp(self._end)}]
        return {**self._live, "status": {"conditions": done if time.time() > self._end else []}}

    def changes(self, version: str) -> str:
        """Return the answer to a watch: nothing while the run is running, then the end of all pods."""
        if time.time() < self._end or version != "1":
            return ""
        ended = {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": 0}}}]}
        pods = [{"metadata": {**it["metadata"], "resourceVersion": "2"}, "status": ended} for it in self.pods.values()]
        return "".join(json.dumps({"type": "MODIFIED", "object": pod}) + "\n" for pod in pods)

    def log(self, pod: str, query: dict[str, str]) -> str:
        chief = "-chief-" in pod
        every = CHIEF_SECONDS if chief else OTHERS_SECONDS
        first = self.begin - LINES_BEFORE * every
        count = int((min(time.time(), self._end) - first) / every) + 1
        begin = 0
        if "sinceTime" in query:
            since = int(datetime.fromisoformat(query["sinceTime"]).timestamp())
            begin = max(0, int((since - first) / every))
        if "tailLines" in query:
            begin = max(begin, count - int(query["tailLines"]))
        times = [(number, first + number * every) for number in range(begin, count)]
        lines = [(at, _line(chief, number, at)) for number, at in times]
        if chief and time.time() > self._end:
            lines.append((self._end, '{"event": "end", "result": "no_bound"}'))
        return "".join(f"{_stamp(at) + ' ' if 'timestamps' in query else ''}{line}\n" for at, line in lines)

    def said_at(self, step: int) -> float:
        """Return when the chief logged a step, in seconds since the epoch."""
        return self.begin + (step / STEPS - LINES_BEFORE) * CHIEF_SECONDS


def _line(chief: bool, number: int, at: float) -> str:
    if not chief:
        return f"I1122 12:00:00.000000 1 rpc.cc:{number}] call {number} took 11.4 ms, 3 waiting, {at:.3f}"
    step = {"event": "step", "time": round(at, 3), "step": number * STEPS, "steps_total": 10**9, "loss": 0.31}
    return json.dumps({**step, "steps_per_second": STEPS / CHIEF_SECONDS, "workers": 16})


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def _serve(run: Run, port: Any, counts: Any) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Print nothing, because standard output is the table."""

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            self._answer(*_answer(run, url.path, dict(parse_qsl(url.query))))

        def do_PATCH(self) -> None:
            self._answer(200, self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            with counts.get_lock():
                counts[0] += 1
                counts[1] += len(body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.put(server.server_port)
    server.serve_forever()


KINDS = {
    "/api/v1": (("Pod", "pods"), ("ConfigMap", "configmaps"), ("Event", "events")),
    "/apis/jobset.x-k8s.io/v1alpha2": (("JobSet", "jobsets"),),
}


def _answer(run: Run, path: str, query: dict[str, str]) -> tuple[int, str]:
    if path in KINDS:
        return 200, json.dumps({"resources": [{"kind": a, "name": b, "namespaced": True} for a, b in KINDS[path]]})
    if path.endswith("/log"):
        return 200, run.log(path.split("/")[-2], query)
    if "/jobsets/" in path:
        return 200, json.dumps(run.live)
    if "watch" in query:
        time.sleep(float(query["timeoutSeconds"]))
        return 200, run.changes(query["resourceVersion"])
    return 200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": list(run.pods.values())})


@contextmanager
def served(run: Run) -> Iterator[tuple[int, Any]]:
    """Yield the server's port, and its counts of requests and of answered bytes."""
    fork = multiprocessing.get_context("fork")
    port, counts = fork.Queue(), fork.Array("q", 2)
    process = fork.Process(target=_serve, args=(run, port, counts), daemon=True)
    process.start()
    try:
        yield port.get(timeout=10), counts
    finally:
        process.terminate()
        process.join()
