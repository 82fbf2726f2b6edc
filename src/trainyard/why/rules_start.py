"""Rules for pods that have a node but do not start: images, sandbox, volumes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..kube.api import Object
from ..trainings.run_state import created
from .answer import Evidence, span
from .rule import Hit
from .view import View, containers, event_time

EFFECT = "{} does not start"
_PULL_REASONS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
_FAILED_PULL = ("Failed", "BackOff", "ErrImageNeverPull", "InspectFailed")
_IMAGE = re.compile(r'(?:image|reference) "([^"]+)"')
_TLS = re.compile(r"x509:|tls: |certificate signed by unknown authority|http: server gave HTTP response to HTTPS")
_DOWN = re.compile(
    r"connection refused|i/o timeout|no route to host|no such host|network is unreachable|connection reset|"
    r"context deadline exceeded|server misbehaving|TLS handshake timeout|50[234] (?:Bad|Service|Gateway)|\bEOF\b"
)
_REFUSED = re.compile(r"401 Unauthorized|403 Forbidden|authorization failed|insufficient_scope|no basic auth")
_QUIET_SECONDS = 180.0
"""Silence after which a pod counts as not started. A pod with its image present starts within seconds; a busy node may
take a minute to pull the first bytes."""
_SETTLE_SECONDS = 20.0
"""Minimum age of a pod. While a node starts, mounts and sandboxes occasionally fail once and are retried."""


def _pulls(view: View) -> Iterator[tuple[str, str, Evidence]]:
    """Yield (place, image, evidence from the kubelet) of the pods whose image cannot be pulled."""
    for place, pod in view.waiting.items():
        text = ""
        for each in containers(pod):
            state = (each.get("state") or {}).get("waiting") or {}
            if state.get("reason") in _PULL_REASONS:
                text = text or str(state.get("message") or "")
                if state["reason"] in ("ErrImageNeverPull", "InvalidImageName"):
                    text = text or str(state["reason"])
        when = ""
        # The message of a back-off may lack the reason, and failures of image volumes appear only in events.
        for event in view.events(pod, *_FAILED_PULL):
            said = str(event.get("message", ""))
            if re.match(r"Failed to pull image|Failed to inspect image|Container image .* is not present", said):
                later = view.events(pod, "Pulled")
                if not later or event_time(later[-1]) < event_time(event):
                    text, when = said, event_time(event)
        if text:
            match = _IMAGE.search(text)
            yield place, match[1] if match else "?", Evidence("kubelet", place, when, text)


def _of_kind(text: str) -> str:
    for code, form in (("tls", _TLS), ("refused", _REFUSED), ("down", _DOWN)):
        if form.search(text):
            return code
    return "missing"


def _host(image: str) -> str:
    return image.partition("/")[0]


def registry_down(view: View) -> Iterator[Hit]:
    """The registry of an image does not answer the node."""
    for place, image, said in _pulls(view):
        if _of_kind(said.text) == "down":
            host = _host(image)
            yield Hit(
                place,
                f"the registry {host} does not answer",
                EFFECT,
                [said],
                f"check that the nodes reach {host}; on a mirror check systemctl status nginx docker-registry",
            )


def registry_tls(view: View) -> Iterator[Hit]:
    """The node does not trust the registry's certificate."""
    for place, image, said in _pulls(view):
        if _of_kind(said.text) == "tls":
            yield Hit(
                place,
                f"the certificate of the registry {_host(image)} is refused",
                EFFECT,
                [said],
                "set containerd_registry_ca to the CA that nodes must trust, and run site.yml",
            )


def registry_refused(view: View) -> Iterator[Hit]:
    """The registry rejects the login."""
    for place, image, said in _pulls(view):
        if _of_kind(said.text) == "refused":
            remedy = "set workloads_pull_username and workloads_pull_password to a valid login"
            yield Hit(place, f"the registry {_host(image)} rejects the login", EFFECT, [said], remedy)


def image_missing(view: View) -> Iterator[Hit]:
    """The registry has no such image or tag."""
    for place, image, said in _pulls(view):
        if _of_kind(said.text) == "missing":
            remedy = "correct the image in workloads_trainings, or push it; site.yml pushes the images that it lists"
            yield Hit(place, f"the image {image} does not exist", EFFECT, [said], remedy)


def pulling(view: View) -> Iterator[Hit]:
    """An image is being pulled to the node."""
    failing = {place for place, _, _ in _pulls(view)}
    for place, pod in view.waiting.items():
        begun, done = view.events(pod, "Pulling"), view.events(pod, "Pulled", "Failed")
        if place in failing or not begun or (done and event_time(done[-1]) >= event_time(begun[-1])):
            continue
        text = str(begun[-1].get("message", ""))
        match = _IMAGE.search(text)
        evidence = Evidence("kubelet", place, event_time(begun[-1]), text)
        image = match[1] if match else "?"
        yield Hit(place, f"the image {image} is being pulled", "{} waits for its image", [evidence])


def _last_failure(view: View, pod: Object, *reasons: str) -> Evidence | None:
    """Return the last event with one of these reasons, if the pod has had time to recover."""
    reported = view.events(pod, *reasons)
    if not reported or view.age(created(pod)) < _SETTLE_SECONDS:
        return None
    return Evidence("kubelet", "", event_time(reported[-1]), str(reported[-1].get("message", "")))


def sandbox(view: View) -> Iterator[Hit]:
    """The node cannot create the pod's sandbox, because of its container runtime or network."""
    for place, pod in view.waiting.items():
        conditions = (pod.get("status") or {}).get("conditions") or []
        made = any(each["type"] == "PodReadyToStartContainers" and each["status"] == "True" for each in conditions)
        said = _last_failure(view, pod, "FailedCreatePodSandBox")
        if said and not made:
            where = pod["spec"].get("nodeName", "?")
            yield Hit(
                place,
                f"{where} cannot create its sandbox",
                EFFECT,
                [said],
                f"check containerd and calico-node on {where}",
            )


def mount_failed(view: View) -> Iterator[Hit]:
    """A volume cannot be mounted on the node."""
    for place, pod in view.waiting.items():
        conditions = (pod.get("status") or {}).get("conditions") or []
        made = any(each["type"] == "PodReadyToStartContainers" and each["status"] == "True" for each in conditions)
        said = _last_failure(view, pod, "FailedMount", "FailedAttachVolume", "FailedMapVolume")
        if said and not made:
            remedy = "check the server or folder behind the volume; the kubelet retries by itself"
            yield Hit(place, "one of its volumes cannot be mounted", EFFECT, [said], remedy)


def not_started(view: View) -> Iterator[Hit]:
    """The node has accepted the pod, but the pod does not start and no event gives a reason."""
    known = {place for place, _, _ in _pulls(view)} | {hit.object for hit in pulling(view)}
    for place, pod in view.waiting.items():
        reasons = {((each.get("state") or {}).get("waiting") or {}).get("reason") for each in containers(pod)}
        events = view.events(pod, "FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "FailedMapVolume")
        node = pod["spec"].get("nodeName")
        quiet = bool(node) and place not in known and not events and reasons <= {"ContainerCreating", "PodInitializing"}
        last = max([created(pod), *(event_time(each) for each in view.events(pod))])
        if quiet and view.age(last) > _QUIET_SECONDS:
            remedy = f"check journalctl -u kubelet -u containerd on {node}"
            yield Hit(place, f"{node} has reported no event for {span(view.age(last))}", EFFECT, [], remedy)


def container_refused(view: View) -> Iterator[Hit]:
    """The container cannot be started with its configuration."""
    reasons = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
    for place, pod in view.waiting.items():
        for each in containers(pod):
            state = (each.get("state") or {}).get("waiting") or {}
            if state.get("reason") in reasons:
                text = str(state.get("message") or state["reason"])
                remedy = "correct the named setting in workloads_trainings: a Secret, a command, a user"
                yield Hit(place, f"its container cannot be started: {text}", EFFECT, [], remedy)
