"""All codes, ordered by layer: a fault in a lower layer explains faults in higher layers.

`tools/why.py` generates the table of codes in the documentation from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import rules_control, rules_crash, rules_network, rules_placement, rules_run, rules_start
from .rule import Hit, Rule
from .view import View

NODES, CONTROL, REGISTRY, NETWORK, ADMISSION, PLACES, STARTS, ENDS, WHOLE, NOTES = range(10)

TABLE = (
    Rule(
        "node_not_ready",
        NODES,
        rules_placement.node_not_ready,
        "Repair the node (check `systemctl status kubelet` there), or add one.",
    ),
    Rule(
        "node_pressure",
        NODES,
        rules_placement.node_pressure,
        "Free the resource that `kubectl describe node` reports as short.",
    ),
    Rule(
        "scheduler_down",
        CONTROL,
        rules_control.scheduler_down,
        "Check `crictl ps -a` on the control plane nodes and `/etc/kubernetes/manifests/kube-scheduler.yaml`.",
    ),
    Rule(
        "controller_down",
        CONTROL,
        rules_control.controller_down,
        "Check `kubectl get pods -n jobset-system`; run `site.yml` to deploy the controller again.",
    ),
    Rule("webhook_down", CONTROL, rules_control.webhook_down, "Check the pods behind the named webhook."),
    Rule(
        "registry_down",
        REGISTRY,
        rules_start.registry_down,
        "Check that the nodes reach it; on a mirror check `systemctl status nginx docker-registry`.",
    ),
    Rule("registry_tls", REGISTRY, rules_start.registry_tls, "Set `containerd_registry_ca` and run `site.yml`."),
    Rule(
        "registry_refused",
        REGISTRY,
        rules_start.registry_refused,
        "Set `workloads_pull_username` and `workloads_pull_password`; for code on the site's mirror, run `site.yml`.",
    ),
    Rule("dns_down", NETWORK, rules_network.dns_down, "Check the deployment `coredns` in `kube-system`."),
    Rule("policy_blocks", NETWORK, rules_network.policy_blocks, "Run `site.yml` to restore the run's own policy."),
    Rule(
        "peer_unreachable",
        NETWORK,
        rules_network.peer_unreachable,
        "Check the log of the named peer, then the network between the nodes.",
    ),
    Rule("quota", ADMISSION, rules_control.quota, "Raise the quota, or lower `requests` and `replicas`."),
    Rule(
        "pod_security",
        ADMISSION,
        rules_control.pod_security,
        "Change the pod; trainings of this project comply with `restricted`.",
    ),
    Rule(
        "suspended",
        ADMISSION,
        rules_run.suspended,
        "Find out who has set `spec.suspend`, then set it to false.",
    ),
    Rule("pod_refused", ADMISSION, rules_control.pod_refused, "See the evidence for the reason."),
    Rule(
        "claim_unbound",
        ADMISSION,
        rules_placement.claim_unbound,
        "Give it an existing storage class (`storage_backend`), or create a volume.",
    ),
    Rule(
        "volume_node",
        PLACES,
        rules_placement.volume_node,
        "Repair the node, or run with `workloads_state=absent` once; shared storage outlives a node.",
    ),
    Rule("gpu_skew", PLACES, rules_placement.gpu_skew, "Restart the node, or run `playbooks/gpu_driver.yml`."),
    Rule(
        "gpu_unhealthy",
        PLACES,
        rules_placement.gpu_unhealthy,
        "Run `playbooks/gpu_recover.yml`; `trainyard gpus` shows which runs hold the GPUs.",
    ),
    Rule(
        "gpu_missing",
        PLACES,
        rules_placement.gpu_missing,
        "Add a host to `gpu_nodes`, or check the pods of the device plugin.",
    ),
    Rule("cordoned", PLACES, rules_placement.cordoned, "Run `kubectl uncordon NODE`, or add a node."),
    Rule("tainted", PLACES, rules_placement.tainted, "Remove the taint, or give the role `tolerations`."),
    Rule("selector", PLACES, rules_placement.selector, "Correct `node_selector`, or label a node."),
    Rule("never_fits", PLACES, rules_placement.never_fits, "Lower `limits`, `requests` or `replicas`, or add a node."),
    Rule("held_by", PLACES, rules_placement.held_by, "Wait for them, or lower the requests."),
    Rule("unplaced", PLACES, rules_placement.unplaced, "See the scheduler's message for the reason."),
    Rule(
        "image_missing",
        STARTS,
        rules_start.image_missing,
        "Correct the image, or push it; `site.yml` pushes the images that it lists.",
    ),
    Rule("sandbox", STARTS, rules_start.sandbox, "Check containerd and `calico-node` on that node."),
    Rule(
        "mount_failed",
        STARTS,
        rules_start.mount_failed,
        "Check the server or folder behind it; the kubelet retries by itself.",
    ),
    Rule("not_started", STARTS, rules_start.not_started, "Check the journals of kubelet and containerd on that node."),
    Rule(
        "container_refused",
        STARTS,
        rules_start.container_refused,
        "Correct the named setting: a Secret, a command, a user.",
    ),
    Rule("oom_killed", ENDS, rules_run.oom_killed, "Raise `limits.memory` of the role."),
    Rule("evicted", ENDS, rules_run.evicted, "Free the named resource on the node."),
    Rule(
        "node_refused",
        ENDS,
        rules_run.node_refused,
        "Check the journal of the kubelet there, and the device plugin's pod.",
    ),
    Rule(
        "disk_full",
        ENDS,
        rules_run.disk_full,
        "Free space, then submit it again: it continues from the last checkpoint.",
    ),
    Rule("refused_input", ENDS, rules_run.refused_input, "Correct the input in `workloads_trainings`."),
    Rule("below_bound", ENDS, rules_run.below_bound, "Raise `train_steps`, or lower `accuracy_bound`."),
    Rule("diverged", ENDS, rules_run.diverged, "Lower `learning_rate`."),
    Rule(
        "stalled",
        ENDS,
        rules_run.stalled,
        "Check the logs of the other roles; on a slow machine raise `stall_timeout`.",
    ),
    Rule("crashed", ENDS, rules_crash.crashed, "See the remedy, or its last lines in `trainyard logs`."),
    Rule("lost_peer", WHOLE, rules_crash.lost_peer, "Correct what ended the first pod."),
    Rule(
        "silent", WHOLE, rules_run.silent, "Check `trainyard logs` of the other roles: one hangs, or its node is slow."
    ),
    Rule("deadline", WHOLE, rules_run.deadline, "Raise `timeout`, or lower `train_steps`."),
    Rule("restarts_exhausted", WHOLE, rules_run.restarts_exhausted, "Fix what ended it, then submit it again."),
    Rule("deleted", WHOLE, rules_run.deleted, "Submit it again: it continues from its last checkpoint."),
    Rule("pulling", NOTES, rules_start.pulling, "Wait.", fault=False),
    Rule("importing", NOTES, rules_run.importing, "Wait.", fault=False),
    Rule("restarted", NOTES, rules_run.restarted, "Wait for its steps.", fault=False),
    Rule("stopped", NOTES, rules_run.stopped, "Submit it again to continue.", fault=False),
)


def _absent(_: View) -> Iterator[Hit]:
    """There is no such run."""
    return iter(())


ABSENT = Rule("absent", WHOLE, _absent, "Name one of the runs that the answer lists.")
"""The only code that no rule yields, because rules need a run."""
