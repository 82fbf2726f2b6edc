"""Names, labels and annotations of a run's objects in the cluster."""

from __future__ import annotations

JOBSET_API = "jobset.x-k8s.io/v1alpha2"
JOB_API = "batch/v1"
API_VERSIONS = {"JobSet": JOBSET_API, "Job": JOB_API, "Deployment": "apps/v1"}
"""Kind of the object that runs a training or a service -> its API version."""

CONTAINER = "tensorflow"
GPU = "nvidia.com/gpu"
"""Extended resource of pods and nodes."""

NAME_LABEL = "trainyard.dev/run"
ROLE_LABEL = "trainyard.dev/role"
PROBE_LABEL = "trainyard.dev/probe"
"""Label of all pods of isolation probes, which the pods of runs do not have."""
TENSORBOARD_LABEL = "trainyard.dev/tensorboard"
"""Label of the TensorBoard of a claim; its value is the claim."""
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"

HASH_ANNOTATION = "trainyard.dev/spec-hash"
ATTEMPT_ANNOTATION = "trainyard.dev/attempt"
WORKLOAD_ANNOTATION = "trainyard.dev/workload"
"""Name of the catalogue entry."""
PROGRAM_ANNOTATION = "trainyard.dev/program"
"""On the record of a user's program: SHA-256 of the path of its code folder and its commands."""
TOPOLOGY_ANNOTATION = "trainyard.dev/topology"
DECIDING_ANNOTATION = "trainyard.dev/deciding"
"""Place of the pod whose exit decides the run and whose log reports its progress, such as `chief-0`."""

MANAGED = {"app.kubernetes.io/managed-by": "trainyard"}
RESULT_KEY = "result.json"
MANIFEST_KEY = "manifest.json"
"""In the record of a stopped run: the manifest of its object, with which it can continue without its description."""
RUNS = ("JobSet", "Job")
"""Kinds of objects that run to completion."""


def result_name(run: str) -> str:
    """Return the name of the ConfigMap with the result of a run."""
    return f"{run}-result"
