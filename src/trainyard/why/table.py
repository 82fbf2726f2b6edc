"""All codes, ordered by cause: what is broken in a lower layer explains what waits in a higher one.

`docs/why.py` writes the page of codes from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import rules_claims as claims
from . import rules_control as control
from . import rules_end as end
from . import rules_network as network
from . import rules_nodes as nodes
from . import rules_room as room
from . import rules_run as run
from . import rules_silent as silent
from . import rules_start as start
from .rule import Hit, Rule
from .view import View

NODES, CONTROL, REGISTRY, NETWORK, ADMISSION, PLACES, STARTS, ENDS, WHOLE, NOTES = range(10)

TABLE = (
    Rule(
        "node_not_ready",
        NODES,
        nodes.node_not_ready,
        "Bring the node back: `systemctl status kubelet` there. Or add one.",
    ),
    Rule("node_pressure", NODES, nodes.node_pressure, "Make room there; `kubectl describe node` names what is short."),
    Rule(
        "scheduler_down",
        CONTROL,
        control.scheduler_down,
        "`crictl ps -a` on the control plane nodes, and `/etc/kubernetes/manifests/kube-scheduler.yaml`.",
    ),
    Rule(
        "controller_down",
        CONTROL,
        control.controller_down,
        "`kubectl get pods -n jobset-system`; `site.yml` puts it up again.",
    ),
    Rule("webhook_down", CONTROL, control.webhook_down, "Look at the pods behind the webhook that is named."),
    Rule(
        "registry_down",
        REGISTRY,
        start.registry_down,
        "Bring it back; with a mirror: `systemctl status nginx docker-registry` there.",
    ),
    Rule("registry_tls", REGISTRY, start.registry_tls, "`containerd_registry_ca`; `site.yml` lays it down."),
    Rule(
        "registry_refused",
        REGISTRY,
        start.registry_refused,
        "`workloads_pull_username` and `workloads_pull_password`; for code on the site's mirror, run `site.yml`.",
    ),
    Rule("dns_down", NETWORK, network.dns_down, "Look at `coredns` in `kube-system`."),
    Rule("policy_blocks", NETWORK, network.policy_blocks, "`site.yml` puts the run's own policy back."),
    Rule(
        "peer_unreachable",
        NETWORK,
        network.peer_unreachable,
        "The log of the one that it names, then the network between the nodes.",
    ),
    Rule("quota", ADMISSION, control.quota, "Raise the quota, or lower `requests` and `replicas`."),
    Rule(
        "pod_security",
        ADMISSION,
        control.pod_security,
        "Change the pod; trainings of this project are at `restricted`.",
    ),
    Rule(
        "suspended",
        ADMISSION,
        end.suspended,
        "Take `spec.suspend` back, or ask who has set it.",
    ),
    Rule("pod_refused", ADMISSION, control.pod_refused, "What it says names the reason."),
    Rule(
        "claim_unbound",
        ADMISSION,
        claims.claim_unbound,
        "Give it a storage class that is there (`storage_backend`), or make a volume.",
    ),
    Rule(
        "volume_node",
        PLACES,
        claims.volume_node,
        "Bring the node back, or `workloads_state=absent` once; shared storage outlives a node.",
    ),
    Rule("gpu_skew", PLACES, nodes.gpu_skew, "Restart the node, or `playbooks/gpu_driver.yml`."),
    Rule(
        "gpu_unhealthy",
        PLACES,
        nodes.gpu_unhealthy,
        "`playbooks/gpu_recover.yml`; `trainyard gpus` shows who holds them.",
    ),
    Rule("gpu_missing", PLACES, nodes.gpu_missing, "A host in `gpu_nodes`; look at the pods of the device plugin."),
    Rule("cordoned", PLACES, nodes.cordoned, "`kubectl uncordon NODE`, or add a node."),
    Rule("tainted", PLACES, nodes.tainted, "Remove the taint, or give the role `tolerations`."),
    Rule("selector", PLACES, claims.selector, "Correct `node_selector`, or label a node."),
    Rule("never_fits", PLACES, room.never_fits, "Lower `limits`, `requests` or `replicas`, or add a node."),
    Rule("held_by", PLACES, room.held_by, "Wait for them, or ask for less."),
    Rule("unplaced", PLACES, room.unplaced, "What it says names the reason."),
    Rule(
        "image_missing",
        STARTS,
        start.image_missing,
        "Correct the image, or push it: `site.yml` does for those that it lists.",
    ),
    Rule("sandbox", STARTS, start.sandbox, "Look at containerd and `calico-node` on that node."),
    Rule(
        "mount_failed",
        STARTS,
        start.mount_failed,
        "Look at the server or folder behind it; the kubelet tries again by itself.",
    ),
    Rule("not_started", STARTS, start.not_started, "The journals of kubelet and containerd on that node."),
    Rule("container_refused", STARTS, start.container_refused, "Correct what it names: a Secret, a command, a user."),
    Rule("oom_killed", ENDS, run.oom_killed, "Raise `limits.memory` of the role."),
    Rule("evicted", ENDS, run.evicted, "Make room on the node."),
    Rule("node_refused", ENDS, run.node_refused, "The journal of the kubelet there, and the device plugin's pod."),
    Rule("disk_full", ENDS, run.disk_full, "Make room; the same call goes on from the last checkpoint."),
    Rule("refused_input", ENDS, run.refused_input, "Change it in `workloads_trainings`."),
    Rule("below_bound", ENDS, run.below_bound, "Raise `train_steps`, or lower `accuracy_bound`."),
    Rule("diverged", ENDS, run.diverged, "Lower `learning_rate`."),
    Rule("stalled", ENDS, run.stalled, "Logs of the other roles; on a slow machine a larger `stall_timeout`."),
    Rule("crashed", ENDS, run.crashed, "Its last lines, by `trainyard logs`."),
    Rule("silent", WHOLE, silent.silent, "`trainyard logs` of the other roles: one hangs, or its node is slow."),
    Rule("deadline", WHOLE, end.deadline, "Raise `timeout`, or fewer steps."),
    Rule("restarts_exhausted", WHOLE, end.restarts_exhausted, "Mend what ended it, and call it again."),
    Rule("deleted", WHOLE, end.deleted, "Call it again: it goes on from its checkpoint."),
    Rule("pulling", NOTES, start.pulling, "Wait.", fault=False),
    Rule("importing", NOTES, end.importing, "Wait.", fault=False),
    Rule("restarted", NOTES, end.restarted, "Wait for its steps.", fault=False),
    Rule("stopped", NOTES, end.stopped, "Call it again to go on.", fault=False),
)


def _absent(_: View) -> Iterator[Hit]:
    """There is no such run."""
    return iter(())


ABSENT = Rule("absent", WHOLE, _absent, "The answer names those that there are.")
"""The one code that no rule finds: there is nothing to look at."""
