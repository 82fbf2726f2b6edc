"""Names by which the parts of a run are found in the cluster."""

from __future__ import annotations

JOBSET_API = "jobset.x-k8s.io/v1alpha2"
JOB_API = "batch/v1"
API_VERSIONS = {"JobSet": JOBSET_API, "Job": JOB_API, "Deployment": "apps/v1"}
"""Kind of the object that runs a training or a service -> its API version."""

CONTAINER = "tensorflow"
GPU = "nvidia.com/gpu"
"""The resource, of pods and of nodes."""

NAME_LABEL = "trainyard.dev/run"
ROLE_LABEL = "trainyard.dev/role"
TENSORBOARD_LABEL = "trainyard.dev/tensorboard"
"""Of what shows the files of a claim; its value is the claim."""
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"

HASH_ANNOTATION = "trainyard.dev/spec-hash"
ATTEMPT_ANNOTATION = "trainyard.dev/attempt"
WORKLOAD_ANNOTATION = "trainyard.dev/workload"
"""Entry of the catalogue."""
PROGRAM_ANNOTATION = "trainyard.dev/program"
"""Of a record: SHA-256 of the folder of code and the command of a program of a user."""
TOPOLOGY_ANNOTATION = "trainyard.dev/topology"
DECIDING_ANNOTATION = "trainyard.dev/deciding"
"""Place of the pod whose exit is the run's, and whose log tells how far it is, such as `chief-0`."""

MANAGED = {"app.kubernetes.io/managed-by": "trainyard"}
RESULT_KEY = "result.json"
MANIFEST_KEY = "manifest.json"
"""In the record of a run that was stopped: what ran it, so that it can go on without its description."""
RUNS = ("JobSet", "Job")
"""Kinds of objects that run something which ends."""


def result_name(run: str) -> str:
    """Name of the ConfigMap with the result of a run."""
    return f"{run}-result"
