"""Tests of GPUs of trainings: the pods that get them, their images, and where these are made and imported."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from checkout import ROOT, read_yaml

from trainyard.site.short_names import train_call
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.resolve import resolve_all
from trainyard.trainings.site_images import Defaults
from trainyard.trainings.spec import parse_training


@pytest.mark.parametrize(
    ("name", "computing", "image"),
    [
        ("cnn_ps", "worker", "tensorflow-gpu"),
        ("mnist_ps", "worker", "tensorflow-gpu"),
        ("mnist_gpu", "chief", "tensorflow-gpu"),
        ("speech_gpu", "chief", "tensorflow-gpu"),
        ("speech_ps", "worker", "tensorflow-gpu"),
        ("notebook", "server", "notebook-gpu"),
        # It only needs the driver's program, which is mounted with the GPU.
        ("nvidia_smi", "chief", "tensorflow"),
    ],
)
def test_gpus_of_a_call_go_to_the_pods_that_compute(name: str, computing: str, image: str) -> None:
    catalogue = read_catalogue([])
    call, problems = train_call({"workload": name, "gpus": 1}, [], catalogue)
    assert call and not problems
    (resolved,) = resolve_all([call.wanted], catalogue)
    training = parse_training(resolved.bound(Defaults(known=False, logs={"claim": "c"})))
    assert [role.name for role in training.roles.values() if role.gpus] == [computing]
    found = {role.name: role.image.partition("@")[0].rpartition("/")[2] for role in training.roles.values()}
    assert found.pop(computing) == image
    assert set(found.values()) <= {"tensorflow"}


@pytest.mark.parametrize(("requires", "image"), [(True, "image_tensorflow_gpu"), (False, "image_tensorflow")])
def test_the_image_with_cuda_is_made_where_gpus_compute(requires: bool, image: str) -> None:
    loader = DataLoader()
    role: dict[str, Any] = {"groups": {}, "hostvars": {}, "workloads_require_gpu": requires}
    role["workloads_trainings"] = [{"workload": "mnist_gpu"}]
    for file in ("vars/main.yml", "defaults/main.yml"):
        role |= loader.load_from_file(str(ROOT / "roles/bundle" / file), trusted_as_template=True)
    found = Templar(loader=loader, variables=role).template(role["bundle_artefacts_of_site"])
    assert sorted(found) == sorted([image, "image_mnist", "image_tensorboard", "image_workloads"])


@pytest.mark.parametrize(("groups", "with_cuda"), [(["workers", "gpu_nodes"], True), (["workers"], False)])
def test_images_with_cuda_are_laid_into_nodes_with_gpus_alone(groups: list[str], with_cuda: bool) -> None:
    loader = DataLoader()
    made = {f"image_{name}": {"digest": "sha256:1", "layout": "/x"} for name in ("tensorflow", "tensorflow_gpu")}
    made |= {f"image_{name}": {"digest": "sha256:1", "layout": "/x"} for name in ("workloads", "mnist", "tensorboard")}
    role: dict[str, Any] = {"groups": {}, "group_names": groups, "supply": "vendors"}
    role["hostvars"] = {"localhost": {"bundle_artefacts": made}}
    for file in ("vars/main.yml", "defaults/main.yml"):
        role |= loader.load_from_file(str(ROOT / "roles/workloads" / file), trusted_as_template=True)
    role |= {"workloads_trainings": [{"workload": "mnist_gpu"}], "workloads_registry": ""}
    found = Templar(loader=loader, variables=role).template(role["__workloads_delivered"])
    references = {each["reference"] for each in found}
    assert ("localhost/trainyard/tensorflow-gpu@sha256:1" in references) is with_cuda
    assert "localhost/trainyard/mnist-data@sha256:1" in references


def test_a_mirror_gets_what_hosts_with_gpus_need() -> None:
    loader = DataLoader()
    role: dict[str, Any] = {"groups": {"gpu_nodes": ["w1"]}, "hostvars": {"w1": {}}}
    for file in ("vars/main.yml", "defaults/main.yml"):
        role |= loader.load_from_file(str(ROOT / "roles/bundle" / file), trusted_as_template=True)
    found = {
        supply: Templar(loader=loader, variables={**role, "supply": supply}).template(role["bundle_artefacts_of_site"])
        for supply in ("mirror", "vendors")
    }
    assert found == {"mirror": ["apt_repository_gpu", "image_nvidia_device_plugin"], "vendors": []}
    locked = read_yaml(ROOT / "bundle.lock.yml")["artefacts"]
    usual, larger = (locked[name]["packages"] for name in ("apt_repository", "apt_repository_gpu"))
    assert larger == [*usual, "artefact:deb_nvidia_container_toolkit/"]
