"""Stop, continue, restart and delete, with the token of who asks."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.conftest import ROOT
from tests.unit.console.consoles import LIVE, LOG, RECORD, RUN, Stand, run
from trainyard.console import actions, web_server

STEP = '2026-11-21T12:00:01.000000000Z {"event": "step", "step": 40}'


def kept(stand: Stand) -> dict[str, object]:
    return json.loads(stand.api.objects[RECORD]["data"]["result.json"])


def test_a_run_is_stopped_and_goes_on(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        stand.api.set_log(LOG, STEP)
        csrf = await stand.log_in("operator")
        spec = json.loads(json.dumps(stand.api.objects[LIVE]["spec"]))
        status, text = await stand.post(f"{RUN}/stop", csrf)
        assert (status, json.loads(text)) == (200, {"message": "Stop the run mnist after it has saved"})
        assert LIVE not in stand.api.objects
        assert {**kept(stand), "ended_at": "", "stop_asked_at": ""}.items() >= {
            "result": "stopped", "steps": 40, "stopped_by": "olga", "attempt": "20261121T120000Z-0001",
        }.items()  # fmt: skip
        assert (await stand.post(f"{RUN}/stop", csrf))[0] == 200
        stand.clock.ahead += 5
        status, text = await stand.post(f"{RUN}/continue", csrf)
        assert status == 200, text
        live = stand.api.objects[LIVE]
        attempt = live["metadata"]["annotations"]["trainyard.dev/attempt"]
        assert attempt != "20261121T120000Z-0001"
        args = live["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["args"]
        assert {f"--attempt={attempt}", "--resume=auto"} <= set(args)
        text = json.dumps(live["spec"]).replace(attempt, "20261121T120000Z-0001")
        assert json.loads(text) == spec
        assert kept(stand)["result"] == "running"
        assert "stopped_by" not in kept(stand)
        assert (await stand.post(f"{RUN}/continue", csrf))[0] == 409
        users = {token for token, method, path in stand.api.asked}
        assert users == {"operator"}

    run(scenario, tmp_path)


def test_a_run_is_started_over(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        csrf = await stand.log_in("operator")
        status, text = await stand.post(f"{RUN}/restart", csrf)
        assert status == 200, text
        pod = stand.api.objects[LIVE]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        assert "--resume=fresh" in pod["containers"][0]["args"]
        assert {"name": "RESUME", "value": "fresh"} in pod["containers"][0]["env"]

    run(scenario, tmp_path)


def test_deleting_needs_the_name(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        csrf = await stand.log_in("operator")
        for data in (None, {"name": "mnis"}, b'{"name": "mnist"}'):
            assert (await stand.post(f"{RUN}/delete", csrf, data))[0] == 409
        assert stand.api.writes == []
        assert (await stand.post(f"{RUN}/delete", csrf, {"name": "mnist"}))[0] == 200
        assert not {LIVE, RECORD} & stand.api.objects.keys()
        # Its files, its claim and what stands round it stay.
        assert {call.partition(" ")[0] for call in stand.api.writes} == {"PATCH", "DELETE"}
        assert [call for call in stand.api.writes if "claim" in call or "secret" in call] == []

    run(scenario, tmp_path)


def test_a_service_is_left_to_the_playbook(tmp_path: Path) -> None:
    """Its Deployment would go on, and its record say that it has stopped."""

    async def scenario(stand: Stand) -> None:
        live = stand.api.objects.pop(LIVE)
        pod = live["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        spec = {"replicas": 1, "template": pod}
        served = {**live, "apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
        stand.api.objects["/apis/apps/v1/namespaces/trainings/deployments/mnist"] = served
        csrf = await stand.log_in("operator")
        for action in ("stop", "continue", "restart", "delete"):
            status, text = await stand.post(f"{RUN}/{action}", csrf, {"name": "mnist"})
            assert status == 409
            assert "playbooks/train_stop.yml -e run=mnist -e confirm=mnist" in text
        assert stand.api.writes == []
        status, page = await stand.get("/runs/trainings/mnist")
        assert status == 200 and "data-action" not in page

    run(scenario, tmp_path)


def test_a_form_without_a_script_leads_back_to_the_page_which_says_what_was_done(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        csrf = await stand.log_in("operator")
        sent = {**stand.origin, "Accept": "text/html"}
        for action, said in (("stop", "Stop the run mnist"), ("stop", "had already ended")):
            async with stand.browser.post(
                f"{stand.url}{RUN}/{action}", data={"session": csrf}, headers=sent, allow_redirects=False
            ) as got:
                assert (got.status, got.headers["Location"]) == (303, "/runs/trainings/mnist")
            stand.clock.ahead += 5
            assert said in (await stand.get("/runs/trainings/mnist"))[1]
            assert said not in (await stand.get("/runs/trainings/mnist"))[1]

    run(scenario, tmp_path)


def test_whoever_may_not_changes_nothing(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        for token in ("viewer", "stranger"):
            csrf = await stand.log_in(token)
            for action in ("stop", "continue", "restart", "delete"):
                status, text = await stand.post(f"{RUN}/{action}", csrf, {"name": "mnist"})
                assert (status, "error" in json.loads(text)) == (403, True)
            if token == "viewer":
                _, page = await stand.get("/runs/trainings/mnist")
                assert "/stop" not in page
        assert stand.api.writes == []
        await stand.log_in("operator")
        assert "/stop" in (await stand.get("/runs/trainings/mnist"))[1]

    run(scenario, tmp_path)


def test_a_pod_that_ends_has_the_time_that_actions_get() -> None:
    text = (ROOT / "roles/dashboard/templates/console.yaml.j2").read_text(encoding="utf-8")
    grace = re.search(r"terminationGracePeriodSeconds: (\d+)", text)
    # Connections of both ports end one after the other, and before that.
    assert grace and int(grace[1]) >= actions.END_SECONDS + 2 * web_server.END_SECONDS


def test_a_forged_record_makes_nothing(tmp_path: Path) -> None:
    async def scenario(stand: Stand) -> None:
        csrf = await stand.log_in("operator")
        await stand.post(f"{RUN}/stop", csrf)
        record = stand.api.objects[RECORD]
        forged = json.loads(record["data"]["manifest.json"])
        forged["kind"], forged["apiVersion"] = "ClusterRoleBinding", "rbac.authorization.k8s.io/v1"
        record["data"]["manifest.json"] = json.dumps(forged)
        before = list(stand.api.writes)
        stand.clock.ahead += 5
        status, text = await stand.post(f"{RUN}/continue", csrf)
        assert status == 409
        assert "manifest of the run" in text and "is invalid" in text
        assert stand.api.writes == before

    run(scenario, tmp_path)
