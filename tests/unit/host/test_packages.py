"""apt_packages: the plan from dpkg's state, and what an installation refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

import pytest

from trainyard.core.errors import CommandError, TrainyardError, WaitError
from trainyard.host import packages
from trainyard.host.packages import Packages, Seen, removals

INSTALLED = {"curl": Seen("ii", "8.14-1"), "containerd.io": Seen("hi", "2.3.4-1"), "runc": Seen("rc", "1.1")}


@pytest.mark.parametrize(
    ("wanted", "hold", "seen", "expected"),
    [
        ({"curl": ""}, False, INSTALLED, []),
        ({"curl": "", "socat": ""}, False, INSTALLED, ["Install socat"]),
        ({"containerd.io": "2.3.4-*"}, True, INSTALLED, []),
        ({"containerd.io": "2.3.5-*"}, True, INSTALLED, ["Install containerd.io=2.3.5-*", "Hold containerd.io"]),
        ({"curl": "8.14-1"}, True, INSTALLED, ["Hold curl"]),
        # Removed with its configuration left behind is not installed.
        ({"runc": ""}, False, INSTALLED, ["Install runc"]),
        (
            {"curl": ""},
            False,
            {"curl": Seen("iF", "8.14-1")},
            ["Finish the interrupted installation of curl", "Install curl"],
        ),
        ({"curl": ""}, False, INSTALLED | {"x": Seen("iU", "1")}, ["Finish the interrupted installation of x"]),
    ],
)
def test_plan(wanted: dict[str, str], hold: bool, seen: dict[str, Seen], expected: list[str]) -> None:
    plan = Packages(wanted, hold).plan(seen)
    assert [step.what for step in plan.steps] == expected


@pytest.mark.parametrize("wanted", [{"containerd.io": "2.3.5-*"}, {"curl": "", "containerd.io": "2.2.*"}])
def test_frozen_versions_stay(wanted: dict[str, str]) -> None:
    with pytest.raises(TrainyardError, match=r"upgrade: containerd\.io is 2\.3\.4-1, but 2\.") as refusal:
        Packages(wanted, frozen_by="/in/use").plan(INSTALLED)
    assert "For a node of this inventory, restore the versions in bundle.lock.yml" in str(refusal.value)


@pytest.mark.parametrize("wanted", [{"containerd.io": "2.3.4-*"}, {"curl": ""}, {"socat": "1.8"}, {"runc": "1.3"}])
def test_frozen_leaves_the_same_and_the_missing_alone(wanted: dict[str, str]) -> None:
    frozen, free = Packages(wanted, frozen_by="/in/use").plan(INSTALLED), Packages(wanted).plan(INSTALLED)
    assert [step.what for step in frozen.steps] == [step.what for step in free.steps]


def test_a_check_run_shows_a_frozen_version_and_the_rest() -> None:
    wanted = {"containerd.io": "2.3.5-*", "socat": ""}
    plan = Packages(wanted, hold=True, frozen_by="/in/use", planning=True).plan(INSTALLED)
    assert [step.what for step in plan.steps] == [
        "For an operator: install containerd.io", "Install socat", "Hold socat",
    ]  # fmt: skip
    assert plan.before["containerd.io"]["version"] == "2.3.4-1" and plan.after["containerd.io"]["version"] == "2.3.5-*"


def test_a_left_journal_is_planned_for() -> None:
    plan = Packages({"curl": ""}).plan(INSTALLED, interrupted=True)
    assert [step.what for step in plan.steps] == ["Finish the interrupted installation of packages"]


def test_diff_names_versions_and_holds() -> None:
    diff = Packages({"containerd.io": "2.3.5-*", "socat": ""}).plan(INSTALLED).diff()
    assert diff["before"] == {"containerd.io": {"version": "2.3.4-1", "held": True}, "socat": None}
    assert diff["after"] == {
        "containerd.io": {"version": "2.3.5-*", "held": True},
        "socat": {"version": "any", "held": False},
    }


class FakeApt:
    """Answers the programs that the module calls, and records them."""

    def __init__(self, *indexes: str, simulation: str = "", current: bool = True, failing: Sequence[str] = ()) -> None:
        self.indexes = list(indexes)
        self.current = current
        self.failing = list(failing)
        self.simulation = simulation
        self.calls: list[str] = []

    def __call__(self, argv: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        words = [word for word in argv if not word.startswith("-") or word == "--simulate"]
        self.calls.append(" ".join(words))
        if argv[0] == "apt-get":
            # Otherwise needrestart restarts services of a host that has it.
            assert options["env"] == packages.ENVIRONMENT and packages.ENVIRONMENT["NEEDRESTART_SUSPEND"] == "1"
        if self.failing and self.failing[0] == self.calls[-1]:
            raise CommandError(f"E: {self.failing.pop(0)} failed")
        out = ""
        if "madison" in argv:
            out = self.indexes[0]
            self.indexes = self.indexes[1:] or self.indexes
        elif "--simulate" in argv:
            out = self.simulation
        return subprocess.CompletedProcess(argv, 0, out, "")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeApt], FakeApt]:
    def install(apt: FakeApt) -> FakeApt:
        monkeypatch.setattr(packages, "run", apt)
        monkeypatch.setattr(packages, "write", lambda *arguments: None)
        monkeypatch.setattr(packages, "index_is_current", lambda: apt.current)
        return apt

    return install


def test_the_index_is_read_again_only_when_it_lacks_the_version(use: Callable[[FakeApt], FakeApt]) -> None:
    apt = use(FakeApt("kubelet | 1.36.3-1.1 | http://x\n"))
    Packages({"kubelet": "1.36.3-*"}).install(["kubelet"])
    assert apt.calls[0] == "apt-cache madison kubelet"
    assert apt.calls[-1] == "apt-get install kubelet=1.36.3-*"
    assert "apt-get update" not in apt.calls

    apt = use(FakeApt("kubelet | 1.36.1-1.1 | http://x\n", "kubelet | 1.36.3-1.1 | http://x\n"))
    Packages({"kubelet": "1.36.3-*"}).install(["kubelet"])
    assert "apt-get update" in apt.calls


def test_packages_are_looked_up_without_an_installation(use: Callable[[FakeApt], FakeApt]) -> None:
    apt = use(FakeApt("curl | 8.14-1 | http://x\n"))
    wanted = Packages({"curl": "", "socat": "1.8*"})
    assert wanted.missing(INSTALLED) == ["socat"]
    with pytest.raises(TrainyardError, match=r"socat 1\.8\* \(there: none\)"):
        wanted.look_up(["socat"])
    assert wanted.look_up(["curl"]) is False
    assert not [call for call in apt.calls if "install" in call]


def test_a_version_that_no_source_has_is_named(use: Callable[[FakeApt], FakeApt]) -> None:
    use(FakeApt("kubelet | 1.36.1-1.1 | http://x\n"))
    with pytest.raises(TrainyardError, match=r"kubelet 1\.36\.3-\* \(there: 1\.36\.1-1\.1\)"):
        Packages({"kubelet": "1.36.3-*"}).install(["kubelet"])


@pytest.mark.parametrize(
    ("may_remove", "refused"),
    [
        ([], True),
        (["containerd.io"], False),
        (["container*"], False),
        (["container*", "!containerd*"], True),
        (["!containerd*", "*"], True),
        (["container"], True),
    ],
)
def test_removing_packages_is_refused(use: Callable[[FakeApt], FakeApt], may_remove: list[str], refused: bool) -> None:
    apt = use(FakeApt("docker.io | 26.1 | http://x\n", simulation="Remv containerd.io [2.3.4-1]\nInst docker.io\n"))
    packages = Packages({"docker.io": ""}, may_remove=may_remove)
    if refused:
        with pytest.raises(TrainyardError, match=r"would remove containerd\.io"):
            packages.install(["docker.io"])
    else:
        packages.install(["docker.io"])
    assert ("apt-get install docker.io" in apt.calls) != refused


def test_removals_are_read_from_a_simulation() -> None:
    assert removals("Inst a (1)\nRemv b [1]\nPurg c [2]\nConf a\n") == ["b", "c"]


def test_changed_sources_are_read_before_an_installation(use: Callable[[FakeApt], FakeApt]) -> None:
    apt = use(FakeApt("socat | 1 | http://x\n", current=False))
    Packages({"socat": ""}).install(["socat"])
    assert apt.calls[0] == "apt-get update"


def test_a_source_that_does_not_answer_matters_only_to_what_it_lacks(use: Callable[[FakeApt], FakeApt]) -> None:
    apt = use(FakeApt("socat | 1 | http://x\n", current=False, failing=["apt-get update"]))
    Packages({"socat": ""}).install(["socat"])
    assert apt.calls[-1] == "apt-get install socat"
    use(FakeApt("", current=False, failing=["apt-get update"]))
    with pytest.raises(TrainyardError, match=r"socat .*apt-get update failed.*base_apt_sources"):
        Packages({"socat": ""}).install(["socat"])


def test_a_download_that_fails_is_tried_with_a_new_index(use: Callable[[FakeApt], FakeApt]) -> None:
    apt = use(FakeApt("socat | 1 | http://x\n", failing=["apt-get install socat"]))
    Packages({"socat": ""}).install(["socat"])
    assert apt.calls[-2:] == ["apt-get update", "apt-get install socat"]


def test_another_apt_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(argv: Sequence[str], **options: object) -> None:
        raise CommandError("E: Could not get lock /var/lib/apt/lists/lock")

    monkeypatch.setattr(packages, "run", locked)
    monkeypatch.setattr(packages, "LOCK_TIMEOUT", 0)
    with pytest.raises(WaitError, match="another apt to end"):
        Packages({}).refresh()
