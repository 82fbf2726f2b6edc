"""Rules for the end, the restart and the suspension of a run as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from ..trainings import record as records
from ..trainings.state import condition, restarts
from .answer import Evidence
from .rule import Hit
from .view import View, event_time

EFFECT = "{} has failed"


def deadline(view: View) -> Iterator[Hit]:
    """An attempt did not finish within `timeout`."""
    for job in view.jobs if view.live is not None else ():
        for each in (job.get("status") or {}).get("conditions") or []:
            if each["type"] == "Failed" and each["status"] == "True" and each.get("reason") == "DeadlineExceeded":
                name = job["metadata"]["name"]
                said = Evidence("job", name, str(each.get("lastTransitionTime") or ""), str(each.get("message") or ""))
                yield Hit(
                    view.snapshot.run,
                    "it did not finish within its timeout",
                    EFFECT,
                    [said],
                    "raise timeout in workloads_trainings, or lower train_steps",
                )


def restarts_exhausted(view: View) -> Iterator[Hit]:
    """The run has reached its maximum number of restarts."""
    failed = condition(view.live, "Failed")
    if failed.get("reason") in ("ReachedMaxRestarts", "BackoffLimitExceeded"):
        said = Evidence("controller", "", str(failed.get("lastTransitionTime") or ""), str(failed.get("message") or ""))
        count = restarts(view.live)
        message = f"it was restarted {count} time{'' if count == 1 else 's'}, which is the maximum"
        yield Hit(view.snapshot.run, message, EFFECT, [said], "fix what ended it, then submit it again")


def stopped(view: View) -> Iterator[Hit]:
    """A user has stopped the run; no step is lost."""
    if view.live is not None and view.live["metadata"].get("deletionTimestamp"):
        yield Hit(view.snapshot.run, "it saves a checkpoint and then stops", "{} is being stopped")
    elif view.live is None and view.record.get("result") == records.STOPPED:
        when = str(view.record.get("ended_at") or "")
        step = f" at step {view.record['steps']}" if "steps" in view.record else ""
        remedy = "run site.yml or playbooks/train.yml to continue it; no step is lost"
        yield Hit(view.snapshot.run, f"a user has stopped it{step}", "{} was stopped", [_record(when)], remedy)


def _record(when: str) -> Evidence:
    return Evidence("record", "", when, "the record of the run has the result stopped")


def deleted(view: View) -> Iterator[Hit]:
    """The object of the run was deleted outside this project."""
    if view.live is None and not view.importing and view.record.get("result") == records.RUNNING:
        remedy = "run site.yml or playbooks/train.yml to continue it from its last checkpoint"
        said = Evidence("record", "", str(view.record.get("submitted_at") or ""), "its record has the result running")
        yield Hit(
            view.snapshot.run, "its object was deleted outside this project", "{} is no longer running", [said], remedy
        )


def restarted(view: View) -> Iterator[Hit]:
    """The run was restarted, and has made no step since."""
    live = view.live
    if live is None or not view.goes_on or view.step or not restarts(live):
        return
    told = view.events(live, "RestartJobSetFailurePolicyAction", "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction")
    said = [Evidence("controller", "", event_time(each), str(each.get("message", ""))) for each in told[-1:]]
    if said:
        yield Hit(view.snapshot.run, f"it was restarted, {restarts(live)} so far", "{} was restarted", said)


def suspended(view: View) -> Iterator[Hit]:
    """The run was suspended outside this project. It has no pods until it is resumed."""
    live = view.live
    if live is not None and view.goes_on and (live.get("spec") or {}).get("suspend"):
        kind = str(live["kind"]).lower()
        command = f"kubectl -n {view.snapshot.namespace} patch {kind} {view.snapshot.run} --type=merge"
        remedy = command + """ -p '{"spec":{"suspend":false}}'"""
        said = Evidence("job", view.snapshot.run, "", "spec.suspend is true, which this project never sets")
        yield Hit(view.snapshot.run, "it was suspended outside this project", "{} has no pods", [said], remedy)


def importing(view: View) -> Iterator[Hit]:
    """The data of the run is imported into its claim before it is submitted."""
    if view.importing:
        name = f"{view.snapshot.run}-import"
        said = [Evidence("job", name, "", "is running")]
        yield Hit(view.snapshot.run, "its data is being imported", "{} waits for its data", said)
