"""train.yml and train_stop.yml, called as users call them: what the modules get, and what is refused before them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playbooks.runs import ROOT, copy, play

# Two seconds and more for each start of Ansible.
pytestmark = pytest.mark.slow

BUNDLE = """
from ansible.module_utils.basic import AnsibleModule
OPTIONS = ("lock", "project", "cache_dir", "source", "artefacts", "progress_file", "proxy")
module = AnsibleModule({name: {"type": "raw"} for name in OPTIONS}, supports_check_mode=True)
made = {name: {"digest": "sha256:" + "1" * 64, "layout": "/x"} for name in module.params["artefacts"]}
module.exit_json(artefacts=made, missing=[], recipes=[])
"""
RECORD = """
import os
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
OPTIONS = %r
module = AnsibleModule({name: {"type": "raw"} for name in OPTIONS})
Path(os.environ["TOUCHED"], %r).write_text(module.jsonify(module.params))
left_alone = os.environ.get("LEFT_ALONE", "")
module.exit_json(changed=True, training={"result": "running"}, namespace="trainings", left_alone=left_alone)
"""
TRAINING = (
    *("kubeconfig", "training", "state", "replace", "resume", "wait", "log_dir", "token_dir", "isolation_probe"),
    *("isolation_control", "pull_registry", "pull_username", "pull_password", "progress_file"),
)
PUSH = (
    *("registry", "ca_file", "client_cert", "client_key", "auth_file", "username", "password", "images", "probe"),
    "proxy",
)
SITE = {
    "supply": "mirror",
    "site_dir": "/tmp/site",
    "workloads_registry": "registry.site.lan/t",
    "workloads_logs_claim": "training",
    "workloads_trainings": [{"workload": "mnist_ps", "train_steps": 2000, "env": {"KEY": "s3cret"}}],
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The playbooks with the real roles, and modules that only say what they were given."""
    folder = copy(tmp_path_factory.mktemp("checkout"))
    for name in ("roles", "workloads", "bundle.lock.yml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "library" / "bundle.py").write_text(BUNDLE, encoding="utf-8")
    (folder / "library" / "training.py").write_text(RECORD % (TRAINING, "training"), encoding="utf-8")
    (folder / "library" / "oci_push.py").write_text(RECORD % (PUSH, "oci_push"), encoding="utf-8")
    (folder / "library" / "code_image.py").symlink_to(ROOT / "library" / "code_image.py")
    stop = ("kubeconfig", "run", "log_dir", "confirm", "delete", "progress_file")
    (folder / "library" / "training_stop.py").write_text(RECORD % (stop, "training_stop"), encoding="utf-8")
    return folder


def call(checkout: Path, folder: Path, verb: str, **given: Any) -> tuple[int, dict[str, Any], str]:
    """Status, what the module was given (empty where it was not called), and the output."""
    extra = [part for name, value in given.items() for part in ("-e", f"{name}={value}")]
    status, touched, output = play(checkout, folder, f"playbooks/{verb}.yml", *extra, "-i", str(site(folder)))
    path = folder / "touched" / {"train": "training", "train_stop": "training_stop"}[verb]
    return status, json.loads(path.read_text(encoding="utf-8")) if touched else {}, output


def site(folder: Path) -> Path:
    """An inventory of the site's variables, so that the call's own are the only extra ones."""
    path = folder / "more.yml"
    hosts = {name: {"ansible_host": f"10.1.0.1{index}"} for index, name in enumerate(("m1", "cp1", "w1", "w2"))}
    path.write_text(json.dumps({"all": {"hosts": hosts, "vars": SITE}}), encoding="utf-8")
    return path


def test_a_training_in_one_line(checkout: Path, tmp_path: Path) -> None:
    status, given, output = call(checkout, tmp_path, "train", workload="mnist_ps", workers=4, wait="false")
    assert status == 0, output
    training = given["training"]
    assert (training["name"], training["flags"]["train_steps"]) == ("mnist-ps", 2000)
    assert {role["name"]: role.get("replicas") for role in training["roles"]}["worker"] == 4
    assert training["roles"][0]["image"] == "registry.site.lan/t/tensorflow@sha256:" + "1" * 64
    assert (given["wait"], given["resume"], given["replace"]) == (False, "auto", False)
    assert "s3cret" not in output


@pytest.mark.parametrize(("verb", "given"), [("train", "workload=mnist_ps"), ("train_stop", "run=a confirm=a")])
def test_a_limit_without_the_controller_is_no_success(checkout: Path, tmp_path: Path, verb: str, given: str) -> None:
    """Every play that acts is the controller's: such a call would do nothing and end with 0."""
    extra = [part for each in given.split() for part in ("-e", each)]
    arguments = [*extra, "-i", str(site(tmp_path)), "--limit=w1"]
    status, touched, output = play(checkout, tmp_path, f"playbooks/{verb}.yml", *arguments)
    assert (status, touched) == (2, set()), output
    assert "--limit w1 leaves out localhost" in output


def test_a_run_that_was_left_alone_is_no_success(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEFT_ALONE", "mnist-ps is running with another description")
    status, _, output = call(checkout, tmp_path, "train", workload="mnist_ps", steps=5)
    assert status == 2, output
    assert "-e replace=mnist-ps" in output


@pytest.mark.parametrize("code", ["mine", "~/mine"])
def test_code_of_a_folder_is_packed_pushed_and_named_by_its_digest(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "worker.py").write_text("print(1)\n", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = code if code.startswith("~") else tmp_path / code
    # The program's own words are no options of the call, whichever comes first.
    given = {
        "workload": "own",
        "code": folder,
        "ps": 1,
        "command": "python worker.py --rate=1 ps=3 workers=7",
        "workers": 2,
    }
    status, done, output = call(checkout, tmp_path, "train", **given, workloads_code_dir=tmp_path / "code")
    assert status == 0, output
    training = done["training"]
    (layout,) = (tmp_path / "code" / "mine").glob("[0-9a-f]*")
    assert training["code"] == f"registry.site.lan/t/code@sha256:{layout.name}"
    pushed = json.loads((tmp_path / "touched" / "oci_push").read_text(encoding="utf-8"))
    (image,) = pushed["images"]
    assert (pushed["registry"], image["reference"]) == ("https://registry.site.lan", f"t/code:{layout.name[:16]}")
    assert (image["layout"], image["digest"]) == (str(layout), f"sha256:{layout.name}")
    assert pushed["client_cert"] is None
    assert [role["command"] for role in training["roles"]] == [
        ["python", "worker.py", "--rate=1", "ps=3", "workers=7"]
    ] * 3
    replicas = {role["name"]: role.get("replicas") for role in training["roles"]}
    assert (replicas["ps"], replicas["worker"]) == (1, 2)
    assert training["flags"] == {}


@pytest.mark.parametrize(("workload", "expected"), [("notebook", ["trainyard/notebook"]), ("cnn_ps", [])])
def test_the_mirror_gets_an_image_that_the_site_does_not_list(
    checkout: Path, tmp_path: Path, workload: str, expected: list[str]
) -> None:
    """It is in the store, and the mirror was set up after it was made."""
    registry = {"mirror_name": "m.lan", "mirror_pki_dir": "/pki", "workloads_registry": "m.lan:5000/trainyard"}
    status, _, output = call(checkout, tmp_path, "train", workload=workload, **registry)
    assert status == 0, output
    path = tmp_path / "touched" / "oci_push"
    pushed = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"images": []}
    assert [image["reference"].partition(":")[0] for image in pushed["images"]] == expected
    assert pushed.get("client_cert", "/pki/push.crt") == "/pki/push.crt"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workload": "mnist_ps", "worker": 4}, "Did you mean workers?"),
        ({"workload": "mnist_ps", "state": "restarted"}, "Did you mean workloads_state "),
        ({"workload": "mnist"}, "Did you mean mnist_ps?"),
        ({"workload": "own", "command": "python worker.py", "code": "/nonexistent"}, "/nonexistent does not exist"),
        ({"workload": "own", "command": "python worker.py supply=vendors"}, "a word of the command, but Ansible sets"),
        ({"workload": "own command=python workers=4"}, 'followed by "workers=4", which may belong to it'),
        ({"workload": "mnist_ps", "workers": 0}, "worker.replicas (with this call) is 0"),
    ],
)
def test_a_call_that_cannot_be_touches_nothing(
    checkout: Path, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    status, done, output = call(checkout, tmp_path, "train", **given)
    assert (status, done) == (2, {}), output
    assert said in output, output
    assert "s3cret" not in output


def test_a_stop_that_is_confirmed(checkout: Path, tmp_path: Path) -> None:
    status, given, output = call(checkout, tmp_path, "train_stop", run="wide", confirm="wide", delete="true")
    assert status == 0, output
    assert (given["run"], given["confirm"], given["delete"]) == ("wide", "wide", "true")


@pytest.mark.parametrize("given", [{"run": "wide"}, {"run": "wide", "confirm": "wild"}, {}])
def test_a_stop_that_is_not_confirmed_touches_nothing(checkout: Path, tmp_path: Path, given: dict[str, Any]) -> None:
    status, done, output = call(checkout, tmp_path, "train_stop", **given)
    assert (status, done) == (2, {}), output
