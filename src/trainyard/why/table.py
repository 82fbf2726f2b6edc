"""All codes, ordered by layer: a fault in a lower layer explains faults in higher layers.

`tools/why.py` generates the table of codes in the documentation from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import rules_control as control
from . import rules_network as network
from . import rules_placement as claims
from . import rules_placement as nodes
from . import rules_placement as room
from . import rules_run as end
from . import rules_run as run
from . import rules_run as silent
from . import rules_start as start
from .rule import Hit, Rule
from .view import View

NODES, CONTROL, REGISTRY, NETWORK, ADMISSION, PLACES, STARTS, ENDS, WHOLE, NOTES = range(10)

TABLE = (
    Rule(
        "node_not_ready",
        NODES,
        nodes.node_not_ready,
        "Repair the node (check `systemctl status kubelet` there), or add one.",
    ),
    Rule(
        "node_pressure", NODES, nodes.node_pressure, "Free the resource that `kubectl describe node` reports as short."
    ),
    Rule(
        "scheduler_down",
        CONTROL,
        control.scheduler_down,
        "Check `crictl ps -a` on the control plane nodes and `/etc/kubernetes/manifests/kube-scheduler.yaml`.",
    ),
    Rule(
        "controller_down",
        CONTROL,
        control.controller_down,
        "Check `kubectl get pods -n jobset-system`; run `site.yml` to deploy the controller again.",
    ),
    Rule("webhook_down", CONTROL, control.webhook_down, "Check the pods behind the named webhook."),
    Rule(
        "registry_down",
        REGISTRY,
        start.registry_down,
        "Check that the nodes reach it; on a mirror check `systemctl status nginx docker-registry`.",
    ),
    Rule("registry_tls", REGISTRY, start.registry_tls, "Set `containerd_registry_ca` and run `site.yml`."),
    Rule(
        "registry_refused",
        REGISTRY,
        start.registry_refused,
        "Set `workloads_pull_username` and `workloads_pull_password`; for code on the site's mirror, run `site.yml`.",
    ),
    Rule("dns_down", NETWORK, network.dns_down, "Check the deployment `coredns` in `kube-system`."),
    Rule("policy_blocks", NETWORK, network.policy_blocks, "Run `site.yml` to restore the run's own policy."),
    Rule(
        "peer_unreachable",
        NETWORK,
        network.peer_unreachable,
        "Check the log of the named peer, then the network between the nodes.",
    ),
    Rule("quota", ADMISSION, control.quota, "Raise the quota, or lower `requests` and `replicas`."),
    Rule(
        "pod_security",
        ADMISSION,
        control.pod_security,
        "Change the pod; trainings of this project comply with `restricted`.",
    ),
    Rule(
        "suspended",
        ADMISSION,
        end.suspended,
        "Find out who has set `spec.suspend`, then set it to false.",
    ),
    Rule("pod_refused", ADMISSION, control.pod_refused, "See the evidence for the reason."),
    Rule(
        "claim_unbound",
        ADMISSION,
        claims.claim_unbound,
        "Give it an existing storage class (`storage_backend`), or create a volume.",
    ),
    Rule(
        "volume_node",
        PLACES,
        claims.volume_node,
        "Repair the node, or run with `workloads_state=absent` once; shared storage outlives a node.",
    ),
    Rule("gpu_skew", PLACES, nodes.gpu_skew, "Restart the node, or run `playbooks/gpu_driver.yml`."),
    Rule(
        "gpu_unhealthy",
        PLACES,
        nodes.gpu_unhealthy,
        "Run `playbooks/gpu_recover.yml`; `trainyard gpus` shows which runs hold the GPUs.",
    ),
    Rule(
        "gpu_missing", PLACES, nodes.gpu_missing, "Add a host to `gpu_nodes`, or check the pods of the device plugin."
    ),
    Rule("cordoned", PLACES, nodes.cordoned, "Run `kubectl uncordon NODE`, or add a node."),
    Rule("tainted", PLACES, nodes.tainted, "Remove the taint, or give the role `tolerations`."),
    Rule("selector", PLACES, claims.selector, "Correct `node_selector`, or label a node."),
    Rule("never_fits", PLACES, room.never_fits, "Lower `limits`, `requests` or `replicas`, or add a node."),
    Rule("held_by", PLACES, room.held_by, "Wait for them, or lower the requests."),
    Rule("unplaced", PLACES, room.unplaced, "See the scheduler's message for the reason."),
    Rule(
        "image_missing",
        STARTS,
        start.image_missing,
        "Correct the image, or push it; `site.yml` pushes the images that it lists.",
    ),
    Rule("sandbox", STARTS, start.sandbox, "Check containerd and `calico-node` on that node."),
    Rule(
        "mount_failed",
        STARTS,
        start.mount_failed,
        "Check the server or folder behind it; the kubelet retries by itself.",
    ),
    Rule("not_started", STARTS, start.not_started, "Check the journals of kubelet and containerd on that node."),
    Rule(
        "container_refused", STARTS, start.container_refused, "Correct the named setting: a Secret, a command, a user."
    ),
    Rule("oom_killed", ENDS, run.oom_killed, "Raise `limits.memory` of the role."),
    Rule("evicted", ENDS, run.evicted, "Free the named resource on the node."),
    Rule(
        "node_refused", ENDS, run.node_refused, "Check the journal of the kubelet there, and the device plugin's pod."
    ),
    Rule("disk_full", ENDS, run.disk_full, "Free space, then submit it again: it continues from the last checkpoint."),
    Rule("refused_input", ENDS, run.refused_input, "Correct the input in `workloads_trainings`."),
    Rule("below_bound", ENDS, run.below_bound, "Raise `train_steps`, or lower `accuracy_bound`."),
    Rule("diverged", ENDS, run.diverged, "Lower `learning_rate`."),
    Rule("stalled", ENDS, run.stalled, "Check the logs of the other roles; on a slow machine raise `stall_timeout`."),
    Rule("crashed", ENDS, run.crashed, "See its last lines in `trainyard logs`."),
    Rule("silent", WHOLE, silent.silent, "Check `trainyard logs` of the other roles: one hangs, or its node is slow."),
    Rule("deadline", WHOLE, end.deadline, "Raise `timeout`, or lower `train_steps`."),
    Rule("restarts_exhausted", WHOLE, end.restarts_exhausted, "Fix what ended it, then submit it again."),
    Rule("deleted", WHOLE, end.deleted, "Submit it again: it continues from its last checkpoint."),
    Rule("pulling", NOTES, start.pulling, "Wait.", fault=False),
    Rule("importing", NOTES, end.importing, "Wait.", fault=False),
    Rule("restarted", NOTES, end.restarted, "Wait for its steps.", fault=False),
    Rule("stopped", NOTES, end.stopped, "Submit it again to continue.", fault=False),
)


def _absent(_: View) -> Iterator[Hit]:
    """There is no such run."""
    return iter(())


ABSENT = Rule("absent", WHOLE, _absent, "Name one of the runs that the answer lists.")
"""The only code that no rule yields, because rules need a run."""
