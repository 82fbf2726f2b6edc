"""Tests of the whole training as processes on the loopback interface."""

import signal
import time

import pytest

from tests.trainings.processes import START_SECONDS, Processes

pytest.importorskip("tensorflow")


@pytest.fixture
def processes(request, tmp_path):
    made = Processes(tmp_path, preloaded="from_nothing" not in request.fixturenames)
    yield made
    made.kill()


@pytest.fixture
def from_nothing():
    """Request processes that start as in their pods."""


@pytest.mark.slow
@pytest.mark.usefixtures("from_nothing")
def test_train_save_resume_and_finish(processes):
    processes.start_all("--train_steps", "0")
    chief = processes.wait_step(100)
    chief.send_signal(signal.SIGTERM)
    assert chief.wait(60) == 42
    connected = processes.events("connected")[0]
    assert connected["peers"].keys() == {"ps 0", "worker 0", "worker 1"}
    assert connected["time"] < processes.events("step")[0]["time"]
    saved = processes.saved()

    total = saved + 205
    processes.start("chief", 0, "--train_steps", str(total), "--accuracy_bound", "0.9")
    chief = processes.wait_step(saved + 20)
    processes.running["worker0"].kill()
    assert chief.wait(START_SECONDS) == 0
    assert processes.events("restore")[-1]["step"] == saved
    end = processes.events("end")[-1]
    assert (end["step"], end["result"]) == (total, "passed")
    # SIGTERM during the last evaluation costs no step.
    assert processes.events("checkpoint")[-1]["time"] < processes.events("evaluate")[-1]["time"]
    # A call in flight on the killed worker may have left one applied step uncounted in its mark.
    assert end["steps_repeated"] <= 3
    assert ("worker 0", "lost") in {(each["task"], each["state"]) for each in processes.events("peer")}

    processes.start("worker", 0)
    chief = processes.start("chief", 0, "--train_steps", str(total))
    assert chief.wait(START_SECONDS) == 0
    assert processes.events("restore")[-1]["step"] == processes.events("end")[-1]["step"] == total
    for name in ("ps0", "worker1"):
        processes.running[name].terminate()
        assert processes.running[name].wait(5) == 42


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", [["ps0"], ["ps0", "worker0", "worker1", "chief0"], ["chief0", "worker1", "ps0", "worker0"]]
)
def test_a_set_that_is_told_to_stop_loses_no_step(processes, order):
    processes.start_all("--train_steps", "0")
    processes.wait_step(100)
    for name in order:
        processes.running[name].terminate()
        time.sleep(0.3)
    assert {name: processes.running[name].wait(20) for name in {*order, "chief0"}} == dict.fromkeys(
        {*order, "chief0"}, 42
    )
    saved = processes.saved()
    assert saved >= processes.events("step")[-1]["step"] > 0

    for name in {"ps0", "worker0", "worker1"} - {*order}:
        processes.running[name].kill()
        processes.running[name].wait()
    chief = processes.start_all("--train_steps", str(saved + 20))
    assert chief.wait(START_SECONDS) == 0
    assert processes.events("restore")[-1]["step"] == saved
    end = processes.events("end")[-1]
    assert (end["step"], end["steps_repeated"]) == (saved + 20, 0)


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_goes_and_the_run_goes_on(processes):
    processes.start_all("--train_steps", "0")
    chief = processes.wait_step(100)
    processes.running["worker0"].terminate()
    assert processes.running["worker0"].wait(20) == 42
    step = processes.events("step")[-1]["step"]
    processes.wait_step(step + 200)
    chief.terminate()
    assert chief.wait(30) == 42
    assert processes.saved() >= step + 200


@pytest.mark.slow
@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 10), (signal.SIGSTOP, 30)])
def test_a_lost_parameter_server_ends_the_chief(processes, number, seconds):
    processes.start_all("--train_steps", "0")
    chief = processes.wait_step(40)
    processes.running["ps0"].send_signal(number)
    assert chief.wait(seconds) == 75
    error = processes.events("error")[-1]
    assert error["code"] == 75 and "ps 0" in error["message"]


@pytest.mark.slow
def test_a_crash_in_native_code_writes_the_stacks_and_costs_a_restart(processes):
    chief = processes.start_all("--train_steps", "0")
    processes.wait(lambda: processes.events("connected"))
    chief.send_signal(signal.SIGSEGV)
    assert chief.wait(20) == -signal.SIGSEGV
    log = (processes.folder / "chief0.log").read_text()
    assert "Fatal Python error: Segmentation fault" in log and "engine/loop/train.py" in log
    with pytest.warns(UserWarning, match="The chief ended by SIGSEGV"):
        assert processes.wait_step(20) is not chief


@pytest.mark.slow
def test_a_hung_worker_costs_its_own_call(processes):
    processes.start_all("--train_steps", "0")
    chief = processes.wait_step(100)
    processes.running["worker0"].send_signal(signal.SIGSTOP)
    # The next checkpoint needs the call that hangs; another worker gets it.
    saved = len(processes.events("checkpoint"))
    processes.wait(lambda: len(processes.events("checkpoint")) >= saved + 3, 60)
    assert [(each["task"], each["state"]) for each in processes.events("peer")] == [("worker 0", "lost")]
    # Another worker has taken over its call, so it must not continue it.
    processes.running["worker0"].send_signal(signal.SIGCONT)
    assert processes.running["worker0"].wait(10) == 42
    processes.start("worker", 0)
    processes.wait(lambda: processes.events("peer")[-1]["state"] == "here")
    step = processes.events("step")[-1]["step"]
    processes.wait_step(step + 200)
    chief.terminate()
    assert chief.wait(30) == 42
    assert processes.saved() >= step + 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "every", "what"), [("1e30", "0", "The loss of the steps"), ("1e39", "1", "After step 1")]
)
def test_what_is_no_finite_number_is_never_saved(processes, rate, every, what):
    chief = processes.start_all("--learning_rate", rate, "--checkpoint_every", every)
    assert chief.wait(START_SECONDS) == 4
    error = processes.events("error")[-1]
    assert error["code"] == 4 and error["message"].startswith(what) and "learning_rate" in error["remedy"]
    assert not list(processes.logs.glob("checkpoints/*/*.index"))


@pytest.mark.slow
def test_the_program_trains_in_pieces_and_goes_on_with_fewer_servers(tmp_path):
    processes = Processes(tmp_path, "cnn_ps", ps=3, workers=1, preloaded=True)
    try:
        for servers, steps in ((3, 4), (2, 8)):
            processes.cluster["ps"] = processes.cluster["ps"][:servers]
            chief = processes.start_all("--train_steps", str(steps), "--batch_size", "16")
            assert chief.wait(START_SECONDS) == 0
            processes.kill()
            held = processes.events("connected")[-1]["bytes"]
            assert sorted(held) == [f"ps {index}" for index in range(servers)]
            # Parameters and two moments each; no ps has less than half of its share.
            assert sum(held.values()) == 3 * 824_326 * 4
            assert min(held.values()) > sum(held.values()) / servers / 2
            end = processes.events("end")[-1]
            assert (end["step"], end["steps_repeated"]) == (steps, 0)
        assert [event["step"] for event in processes.events("restore")] == [4]
    finally:
        processes.kill()


@pytest.mark.slow
def test_a_missing_peer_is_named(processes):
    processes.start("worker", 0)
    chief = processes.start("chief", 0, "--start_timeout", "20")
    assert chief.wait(START_SECONDS) == 75
    error = processes.events("error")[-1]
    assert "20 s" in error["message"] and "ps 0" in error["message"] and "worker 0" not in error["message"]


@pytest.mark.usefixtures("from_nothing")
def test_bad_input_ends_with_2_and_a_bad_volume_with_5_before_tensorflow_is_imported(processes):
    for flags in (["--batch_size", "0"], ["--unknown", "1"]):
        assert processes.start("chief", 0, *flags).wait(20) == 2
    (processes.folder / "file").touch()
    assert processes.start("chief", 0, "--log_dir", str(processes.folder / "file/run")).wait(20) == 5
    assert "file/run cannot be written (Not a directory)" in (processes.folder / "chief0.log").read_text()
    processes.cluster.pop("ps")
    assert processes.start("chief").wait(20) == 2
    assert "no task of role 'ps'" in (processes.folder / "chief0.log").read_text()
