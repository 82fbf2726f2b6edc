"""How a run came to its end as a whole, or to a new beginning."""

from __future__ import annotations

from collections.abc import Iterator

from ..trainings import record as records
from ..trainings.state import condition, restarts
from .answer import Evidence
from .rule import Hit
from .view import View, event_time

EFFECT = "{} has failed"


def deadline(view: View) -> Iterator[Hit]:
    """An attempt was not done within `timeout`."""
    for job in view.jobs if view.live is not None else ():
        for each in (job.get("status") or {}).get("conditions") or []:
            if each["type"] == "Failed" and each["status"] == "True" and each.get("reason") == "DeadlineExceeded":
                name = job["metadata"]["name"]
                said = Evidence("job", name, str(each.get("lastTransitionTime") or ""), str(each.get("message") or ""))
                yield Hit(
                    view.snapshot.run,
                    "it was not done within its timeout",
                    EFFECT,
                    [said],
                    "raise timeout in workloads_trainings, or lower train_steps",
                )


def restarts_exhausted(view: View) -> Iterator[Hit]:
    """It was restarted as often as it may be."""
    failed = condition(view.live, "Failed")
    if failed.get("reason") in ("ReachedMaxRestarts", "BackoffLimitExceeded"):
        said = Evidence("controller", "", str(failed.get("lastTransitionTime") or ""), str(failed.get("message") or ""))
        count = restarts(view.live)
        message = f"it was restarted {count} time{'' if count == 1 else 's'}, and that is all that it may be"
        yield Hit(view.snapshot.run, message, EFFECT, [said], "mend what ended it; then the same call starts it anew")


def stopped(view: View) -> Iterator[Hit]:
    """Somebody has stopped it; no step is lost."""
    if view.live is not None and view.live["metadata"].get("deletionTimestamp"):
        yield Hit(view.snapshot.run, "it is told to save and to stop", "{} is being stopped")
    elif view.live is None and view.record.get("result") == records.STOPPED:
        when = str(view.record.get("ended_at") or "")
        step = f" at step {view.record['steps']}" if "steps" in view.record else ""
        remedy = "site.yml or playbooks/train.yml goes on with it, and no step is lost"
        yield Hit(view.snapshot.run, f"somebody has stopped it{step}", "{} was stopped", [_record(when)], remedy)


def _record(when: str) -> Evidence:
    return Evidence("record", "", when, "the record of the run says so")


def deleted(view: View) -> Iterator[Hit]:
    """What runs it was deleted by somebody else."""
    if view.live is None and not view.importing and view.record.get("result") == records.RUNNING:
        remedy = "site.yml or playbooks/train.yml goes on with it from its last checkpoint"
        said = Evidence("record", "", str(view.record.get("submitted_at") or ""), "its record says that it runs")
        yield Hit(
            view.snapshot.run, "what runs it was deleted by somebody else", "nothing runs {} any more", [said], remedy
        )


def restarted(view: View) -> Iterator[Hit]:
    """It was started again, and has made no step since."""
    live = view.live
    if live is None or not view.goes_on or view.step or not restarts(live):
        return
    told = view.events(live, "RestartJobSetFailurePolicyAction", "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction")
    said = [Evidence("controller", "", event_time(each), str(each.get("message", ""))) for each in told[-1:]]
    if said:
        yield Hit(view.snapshot.run, f"started again, {restarts(live)} so far", "{} was started again", said)


def suspended(view: View) -> Iterator[Hit]:
    """Somebody else has suspended it: it makes no pods until that is taken back."""
    live = view.live
    if live is not None and view.goes_on and (live.get("spec") or {}).get("suspend"):
        kind = str(live["kind"]).lower()
        command = f"kubectl -n {view.snapshot.namespace} patch {kind} {view.snapshot.run} --type=merge"
        remedy = command + """ -p '{"spec":{"suspend":false}}'"""
        said = Evidence("job", view.snapshot.run, "", "spec.suspend is true, which nothing of this project sets")
        yield Hit(view.snapshot.run, "somebody has suspended it", "{} makes no pods", [said], remedy)


def importing(view: View) -> Iterator[Hit]:
    """Its data is brought onto the claim, before it is submitted."""
    if view.importing:
        name = f"{view.snapshot.run}-import"
        said = [Evidence("job", name, "", "goes on")]
        yield Hit(view.snapshot.run, "its data is brought onto the claim", "{} waits for its data", said)
