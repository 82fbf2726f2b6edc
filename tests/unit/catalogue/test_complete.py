"""A line of a site and its entry of the catalogue become one complete description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.filter.resolved_trainings import code_layouts
from trainyard.core.errors import TrainyardError
from trainyard.host.images import Found, Image, make_plan
from trainyard.trainings.catalogue import read_catalogue
from trainyard.trainings.model import Training
from trainyard.trainings.resolve import merged, resolve, resolve_all, run_name, strange_keys
from trainyard.trainings.site_images import NO_DIGEST, TENSORBOARD, Defaults
from trainyard.trainings.spec import parse_training

ENTRY: dict[str, Any] = {
    "description": "A training",
    "kind": "training",
    "image": {"repository": "runtime", "artefact": "image_runtime"},
    "data": {"image": {"repository": "set", "artefact": "image_set"}},
    "command": "python -m train --fast",
    "flags": {"train_steps": 10, "start_timeout": 100, "depth": 3},
    "limits": {"cpu": "2", "memory": "1Gi"},
    "env": {"MODE": "a", "LEVEL": "1"},
    "volumes": [{"name": "a", "mount": "/a", "claim": "a"}, {"name": "b", "mount": "/b", "claim": "b"}],
    "ps": {"limits": {"memory": "4Gi"}},
    "worker": 3,
}
BUNDLE = {"image_runtime": {"digest": "sha256:1"}, "image_set": {"digest": "sha256:2"}}
SITE = Defaults("registry.example.org/t", BUNDLE, {"claim": "training"})


def described(site: Defaults = SITE, **wanted: Any) -> Training:
    return parse_training(resolve({"workload": "my_ps", **wanted}, ENTRY).bound(site))


def test_the_entry_alone() -> None:
    run = described()
    assert (run.name, run.workload, run.namespace, run.topology) == ("my-ps", "my_ps", "trainings", "parameter_server")
    assert {name: role.replicas for name, role in run.roles.items()} == {"chief": 1, "ps": 1, "worker": 3}
    assert run.roles["ps"].limits == {"cpu": "2", "memory": "4Gi"}
    assert run.roles["chief"].command == ("python", "-m", "train", "--fast")
    assert run.images == ("registry.example.org/t/runtime@sha256:1", "registry.example.org/t/set@sha256:2")
    assert list(run.flags.items()) == [("train_steps", 10), ("start_timeout", 100), ("depth", 3)]
    assert run.start_timeout == 100


def test_a_site_has_the_last_word() -> None:
    run = described(
        run="wide", train_steps=20, start_timeout=7, ps=2, worker={"limits": {"cpu": "4"}, "env": {"MODE": "b"}},
        volumes=[{"name": "b", "mount": "/c", "claim": "c"}], data={"claim": "mine"}, max_restarts=9,
    )  # fmt: skip
    assert (run.name, run.max_restarts, run.start_timeout) == ("wide", 9, 7)
    assert run.flags == {"train_steps": 20, "start_timeout": 7, "depth": 3}
    assert (run.roles["ps"].replicas, run.roles["worker"].replicas) == (2, 3)
    assert run.roles["worker"].limits == {"cpu": "4", "memory": "1Gi"}
    assert run.roles["worker"].env == {"MODE": "b", "LEVEL": "1"}
    assert [(each.name, each.mount) for each in run.roles["chief"].volumes] == [("a", "/a"), ("b", "/c")]
    assert (run.data_image, run.data_claim) == ("", "mine")


def test_images_that_no_registry_serves_have_a_name_that_none_could_have() -> None:
    assert described(Defaults("", BUNDLE, {"claim": "c"})).images[0] == "localhost/trainyard/runtime@sha256:1"


def test_an_image_that_is_not_made_is_named_once_the_bundle_is() -> None:
    with pytest.raises(TrainyardError, match="The image image_runtime is not built"):
        described(Defaults("r", {}, {"claim": "c"}))
    assert described(Defaults("r", {}, {"claim": "c"}, known=False)).images[0].endswith("0" * 64)


def test_only_images_that_are_used_have_to_be_made() -> None:
    shown = {"tensorboard": False}
    assert [each["artefact"] for each in resolve({**shown}, ENTRY).images] == ["image_runtime", "image_set"]
    assert [each["artefact"] for each in resolve({**shown, "data": {"claim": "mine"}}, ENTRY).images] == [
        "image_runtime"
    ]
    assert resolve({**shown, "image": "r/mine:1", "data": None}, ENTRY).images == []
    assert resolve({"image": "r/mine:1", "data": None}, ENTRY).images == [TENSORBOARD]
    assert resolve({"image": "r/mine:1", "data": None, "tensorboard": "r/board:1"}, ENTRY).images == []


def test_an_environment_may_name_a_repository_and_an_artefact() -> None:
    resolved = resolve({"workload": "my_ps", "env": {"repository": "a", "artefact": "b"}}, ENTRY)
    assert {each["artefact"] for each in resolved.images} == {"image_runtime", "image_set", "image_tensorboard"}
    assert resolved.bound(SITE)["roles"][0]["env"]["artefact"] == "b"


def test_every_run_has_a_folder_of_its_own_on_a_node() -> None:
    site = Defaults("r", BUNDLE, {"node": "w1", "path": "/srv", "size": "1Gi"})
    assert described(site).logs.path == "/srv/my-ps"
    assert described(site, run="wide").logs.path == "/srv/wide"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"depht": 4}, "depht is 4: a training of this workload has no such key"),
        ({"depht": 4}, "Did you mean depth?"),
        ({"name": "x"}, "Did you mean run?"),
        ({"kind": "training"}, "no such key"),
        ({"batch_size": 4}, "no such key"),
    ],
)
def test_keys_that_a_workload_has_not(wanted: dict, said: str) -> None:
    assert said in "; ".join(map(str, strange_keys({"workload": "my_ps", **wanted}, ENTRY)))


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([{"workload": "my_sp"}], "'my_sp' is not in the catalogue. Did you mean my_ps? Use one of: my_ps."),
        ([{}], "'None' is not in the catalogue"),
        ([{"workload": "my_ps"}, {"workload": "my_ps"}], "two runs have the name my-ps"),
        ([{"workload": "my_ps", "dept": 80}], "my-ps: dept is 80"),
    ],
)
def test_lists_that_cannot_be(listed: list[dict], said: str) -> None:
    with pytest.raises(TrainyardError) as refused:
        resolve_all(listed, {"my_ps": ENTRY})
    assert said in str(refused.value)


def test_a_run_has_its_own_name_or_that_of_its_workload() -> None:
    assert run_name({"workload": "mnist_ps"}) == "mnist-ps"
    assert run_name({"workload": "mnist_ps", "run": "wide"}) == "wide"


def test_lists_are_replaced_and_mappings_joined() -> None:
    below = {"command": ["a"], "data": {"image": "i"}, "worker": {"env": {"A": 1}}}
    above = {"command": ["b"], "data": {"claim": "c"}, "worker": {"env": {"B": 2}}}
    expected = {"command": ["b"], "data": {"image": "i", "claim": "c"}, "worker": {"env": {"A": 1, "B": 2}}}
    assert merged(below, above) == expected


def test_the_training_that_this_project_began_with() -> None:
    (resolved,) = resolve_all([{"workload": "mnist_ps"}], read_catalogue([]))
    run = parse_training(resolved.bound(Defaults(known=False, logs={"claim": "c"})))
    assert {key: run.flags[key] for key in ("train_steps", "batch_size", "learning_rate")} == {
        "train_steps": 200,
        "batch_size": 20,
        "learning_rate": 0.001,
    }
    assert (run.roles["worker"].replicas, run.roles["ps"].replicas) == (2, 1)


def test_a_folder_of_code_is_the_image_that_it_was_packed_into() -> None:
    site = Defaults("registry.example.org/t", BUNDLE, {"claim": "training"}, code={"./mine": "sha256:3"})
    assert described(site, code={"folder": "./mine"}).code == "registry.example.org/t/code@sha256:3"
    laid_in = Defaults("", BUNDLE, {"claim": "training"}, code={"./mine": "sha256:3"})
    assert described(laid_in, code={"folder": "./mine"}).code == "localhost/trainyard/code/my-ps@sha256:3"
    assert described(code={"folder": "./other"}).code.endswith(NO_DIGEST)
    assert described(code="registry.example.org/mine@sha256:4").code == "registry.example.org/mine@sha256:4"


def test_only_code_comes_from_a_folder() -> None:
    with pytest.raises(TrainyardError, match="image None is not built"):
        described(image={"folder": "./mine"})


def test_code_of_one_run_does_not_let_go_of_that_of_another_on_a_node() -> None:
    first, second = (
        {"digest": f"sha256:{digit}", "tag": digit, "layout": f"/{digit}", "item": {"run": run}}
        for digit, run in (("3", "a"), ("4", "b"))
    )
    laid_in = [each["reference"] for each in code_layouts([first, second], "")]
    assert laid_in == ["localhost/trainyard/code/a@sha256:3", "localhost/trainyard/code/b@sha256:4"]
    seen = {reference: Found(reference.partition("@")[2], complete=True, pinned=True) for reference in laid_in}
    # Only the second is called by train.yml.
    assert make_plan([Image(laid_in[1])], seen, timeout=1).steps == []
    newer = code_layouts([{**second, "digest": "sha256:5"}], "")[0]["reference"]
    steps = [step.what for step in make_plan([Image(newer)], seen, timeout=1).steps]
    assert steps == [f"Import {newer}", f"Unpin {laid_in[1]} for the kubelet's garbage collection"]
    served = [each["reference"] for each in code_layouts([first, {**first, "item": {"run": "b"}}], "r.example.org/t")]
    assert served == ["r.example.org/t/code@sha256:3"], "a registry keeps all of a repository"


def test_a_folder_of_code_is_looked_at_once_for_each_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = {"workload": "my_ps", "code": {"folder": "mine"}, "ps": {"command": "python serve.py"}}
    found = resolve(wanted, ENTRY).code
    assert {(each["run"], each["folder"], each["path"]) for each in found} == {("my-ps", "mine", f"{tmp_path}/mine")}
    assert [each["command"] for each in found] == [["python", "-m", "train", "--fast"], ["python", "serve.py"]]
    assert resolve({"workload": "my_ps"}, ENTRY).code == []
    monkeypatch.setenv("HOME", "/home/of-a-user")
    (home,) = resolve({**wanted, "code": {"folder": "~/mine"}, "ps": 0}, ENTRY).code
    assert home["path"] == "/home/of-a-user/mine"


def test_a_command_with_a_quote_that_does_not_end() -> None:
    with pytest.raises(TrainyardError, match="No closing quotation"):
        described(command="python 'worker.py")
