#!/usr/bin/python
"""Run a training or a service on a cluster. Longer than usual, because it documents all keys of a description."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: training
short_description: Run a distributed training until its end, or start a service and wait until it answers
description:
  - Submits a training as a JobSet with its supporting objects, shows its progress, and waits for its end with a
    timeout. Stores the logs of all roles on the controller and records the result in the cluster.
  - A training with a recorded success is not run again until its description changes.
  - A running training is never ended, except with O(replace) or O(state=restarted).
  - If the training does not succeed, the module fails with the last lines of each role's log.
  - A description with the topology C(service) becomes a Deployment that runs until it is stopped, with a Service and a
    token. The token is created once, stored in a Secret and written to O(token_dir). It is never shown.
options:
  training:
    description: The complete training, as returned by the filter P(bound_descriptions#filter).
    type: dict
    required: true
    suboptions:
      name: {description: Name of the run., type: str, required: true}
      workload: {description: Its entry in the catalogue., type: str, required: true}
      description_hash:
        description: SHA-256 of its description in the site, recorded so that a verdict can compare it.
        type: str
        default: ''
      program: {description: 'SHA-256 of its code folder and its command, recorded.', type: str, default: ''}
      named:
        description: Whether the site sets the run's name. Otherwise the name comes from its folder, and a recorded run
          with another program is refused.
        type: bool
        default: true
      topology:
        description: Topology, which determines the roles.
        type: str
        choices: [parameter_server, multi_worker, single, service]
        default: parameter_server
      namespace: {description: Namespace of its pods., type: str, default: trainings}
      roles:
        description: The roles with their pods.
        type: list
        elements: dict
        required: true
        suboptions:
          name: {description: Name of the role., type: str, required: true}
          replicas: {description: Number of pods; the default depends on the topology., type: int}
          image: {description: Reference of the image., type: str, required: true}
          command:
            description: The program and its arguments; empty for the ENTRYPOINT of the image.
            type: list
            elements: str
            default: []
          args: {description: Arguments after the command., type: list, elements: str, default: []}
          entrypoint: {description: Whether the image has an ENTRYPOINT., type: bool, default: false}
          limits: {description: Quantities of C(cpu) and C(memory) and of extended resources., type: dict, default: {}}
          requests: {description: Requested quantities; the default is the limits., type: dict, default: {}}
          gpus: {description: GPUs of each pod., type: int, default: 0}
          cuda: {description: Version of CUDA in the image; a node whose driver is too old is refused., type: str}
          port: {description: Port of the TensorFlow server; the next one is also used., type: int, default: 2222}
          node_selector: {description: Labels that a node must have., type: dict, default: {}}
          tolerations: {description: As in a pod., type: list, elements: dict, default: []}
          spread: {description: Whether its pods are spread over nodes., type: bool, default: true}
          shm: {description: Size of the shared memory., type: str}
          priority: {description: Name of a priority class., type: str}
          env: {description: 'Variables: a value, or C(secret) and C(key) of a Secret.', type: dict, default: {}}
          volumes:
            description: Additional volumes.
            type: list
            elements: dict
            default: []
            suboptions:
              name: {description: Name of the volume., type: str, required: true}
              mount: {description: Path in the pod., type: str, required: true}
              read_only: {description: Whether it is read-only., type: bool, default: true}
              image: {description: Reference of an image., type: str}
              claim: {description: Name of a claim in the namespace., type: str}
              path: {description: A folder that exists on all nodes., type: str}
          grace: {description: Seconds from SIGTERM to SIGKILL., type: int}
      flags: {description: Flags of the program as C(--key=value)., type: dict, default: {}}
      data:
        description: Data, mounted read-only.
        type: dict
        suboptions:
          image: {description: Reference of an image., type: str}
          claim: {description: Name of a claim in the namespace., type: str}
          folder: {description: Folder of the claim; the default is the whole claim., type: str}
          mount: {description: Path of the data in the pods; the default is /data., type: str}
          url: {description: An archive that is imported into this folder before the run is submitted., type: str}
          sha256: {description: SHA-256 of the archive., type: str}
          runtime: {description: Image with Python for the import., type: str}
          code: {description: Image with the import program., type: str}
          authority: {description: 'CA of the server, PEM.', type: str}
      code: {description: Reference of an image with code that is first in Python's path., type: str}
      token: {description: Variable in which a service receives the token that it requires., type: str}
      tensorboard: {description: Image of the TensorBoard for the claim with its files., type: str}
      logs:
        description: Location of the run's files.
        type: dict
        required: true
        suboptions:
          size: {description: Size of the claim., type: str, default: 1Gi}
          node: {description: Node of O(training.logs.path)., type: str, default: ''}
          path: {description: Folder on that node., type: str, default: ''}
          storage_class: {description: Storage class of the claim., type: str, default: ''}
          claim: {description: An existing claim., type: str, default: ''}
      success:
        description: V(exit_code), or C(metric) with C(at_least), C(at_most) or both.
        type: raw
        default: exit_code
      image_pull_policy:
        description: As in a pod.
        type: str
        choices: [IfNotPresent, Always, Never]
        default: IfNotPresent
      max_restarts: {description: Maximum number of counted restarts of the whole run., type: int, default: 3}
      worker_retries: {description: Maximum number of pod failures that are repaired in place., type: int, default: 6}
      timeout: {description: 'Seconds for each attempt, 0: no limit.', type: int, default: 0}
      total_timeout: {description: 'Seconds for all attempts together, 0: no limit.', type: int, default: 0}
      start_timeout: {description: Seconds within which all pods must run; pulls do not count., type: int, default: 300}
  state:
    description:
      - V(present) runs the training unless its success is recorded; V(restarted) runs it in any case; V(absent) deletes
        the run, its claim and its record (the files on the volume stay).
    type: str
    choices: [present, restarted, absent]
    default: present
  replace:
    description:
      - Whether to end a running run of the same name with another description, after it has saved, and run this one
        instead. Otherwise it keeps running, with a warning.
    type: bool
    default: false
  resume:
    description:
      - When a run is submitted, V(auto) continues from its newest checkpoint, and V(fresh) starts from scratch, even if
        its success is recorded.
    type: str
    choices: [auto, fresh]
    default: auto
  wait:
    description: Whether to follow the run to its end instead of only submitting it.
    type: bool
    default: true
  log_dir:
    description: Folder on the controller for the logs of all roles.
    type: path
    required: true
  token_dir:
    description: Folder on the controller for the tokens of services; required for services.
    type: path
    default: ''
  isolation_probe:
    description: Whether an isolation probe, a pod outside the run, tries to connect to the run's ps port during
      training.
    type: bool
    default: true
  isolation_control:
    description: Address C(host,port) that the isolation probe must be able to reach.
    type: str
    default: kubernetes.default.svc,443
  pull_registry:
    description: Registry, as host and port, that receives O(pull_username) and O(pull_password).
    type: str
  pull_username:
    description: User name with which the nodes pull the images; by default they pull without a login.
    type: str
  pull_password:
    description: Password or token of O(pull_username).
    type: str
  progress_file:
    description: File for progress lines; set by the action plugin.
    type: path
notes:
  - In check mode, an unreachable API server is not an error; the result reports that nothing could be planned.
attributes:
  check_mode:
    support: full
    description:
      - Reports whether the training would be run.
      - If the API server does not answer yet, reports that nothing could be planned.
  diff_mode:
    support: full
    description: Shows the run before and after.
extends_documentation_fragment: [kube]
author:
  - trainyard
"""

EXAMPLES = r"""
- name: Run the training
  training:
    kubeconfig: /var/lib/trainyard/kubeconfig
    log_dir: /var/lib/trainyard/logs
    training:
      name: mnist
      workload: mnist_ps
      flags: {train_steps: 200}
      roles:
        - &role
          name: chief
          image: registry.example.com/trainyard/tensorflow:2.21.0
          command: [/opt/venv/bin/python, -m, training.mnist_ps.main]
          limits: {cpu: "2", memory: 1Gi}
        - {<<: *role, name: ps}
        - {<<: *role, name: worker, replicas: 2}
      logs: {claim: training}
"""

RETURN = r"""
training:
  description:
    - The recorded result. C(result) is V(passed), V(no_bound), or V(running) for a training without end. C(roles) has
      the exit code of each pod, or V(stopped) for a pod that was deleted first. C(isolation) has C(stranger_blocked),
      which is null if unknown, and C(detail).
  type: dict
  returned: when it was run or is recorded
  sample:
    name: mnist
    result: passed
    steps: 2000
    train_steps: 2000
    steps_per_second: 121.4
    seconds: 16.5
    accuracy: 0.9366
    accuracy_bound: 0.9
    roles: {chief-0: 0, ps-0: stopped, worker-0: stopped, worker-1: stopped}
    isolation: {stranger_blocked: true, detail: 5 attempts on the ps port in use had no connection}
    apply_to_completion_seconds: 29.1
    restarts: 0
    released: true
    logs: [/var/lib/trainyard/logs/trainings-mnist/20261121T120000Z/mnist-chief-0-0-abcde.log]
left_alone:
  description: Reason why a running run of this name with another description was not replaced; empty otherwise.
  type: str
  returned: always
planned:
  description: False if check mode could not reach the API server.
  type: bool
  returned: always
unread:
  description: Reason why check mode could not read the current state.
  type: str
  returned: when I(planned) is false
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainyard.core.errors import TrainyardError
from ansible.module_utils.trainyard.core.plan import Plan
from ansible.module_utils.trainyard.core.progress import Progress
from ansible.module_utils.trainyard.core.runner import fail, run_plan
from ansible.module_utils.trainyard.kube.api import KubeError
from ansible.module_utils.trainyard.kube.apply import unreachable_plan
from ansible.module_utils.trainyard.kube.connection import KUBECONFIG, connect
from ansible.module_utils.trainyard.trainings.description_checks import TRAINING
from ansible.module_utils.trainyard.trainings.jobset import run_object
from ansible.module_utils.trainyard.trainings.model import Login
from ansible.module_utils.trainyard.trainings.objects import surroundings
from ansible.module_utils.trainyard.trainings.run import Run, Settings
from ansible.module_utils.trainyard.trainings.service import Service
from ansible.module_utils.trainyard.trainings.spec import parse_training
from ansible.module_utils.trainyard.why.judge import explained

LOGIN = ("pull_registry", "pull_username", "pull_password")

ARGUMENT_SPEC = {
    **KUBECONFIG,
    "training": {"type": "dict", "required": True, "options": TRAINING},
    "state": {"type": "str", "choices": ["present", "restarted", "absent"], "default": "present"},
    "replace": {"type": "bool", "default": False},
    "resume": {"type": "str", "choices": ["auto", "fresh"], "default": "auto"},
    "wait": {"type": "bool", "default": True},
    "log_dir": {"type": "path", "required": True},
    "token_dir": {"type": "path", "default": ""},
    "isolation_probe": {"type": "bool", "default": True},
    "isolation_control": {"type": "str", "default": "kubernetes.default.svc,443"},
    "pull_registry": {"type": "str"},
    "pull_username": {"type": "str"},
    "pull_password": {"type": "str", "no_log": True},
    "progress_file": {"type": "path"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_together=[LOGIN],
        supports_check_mode=True,
    )
    params = module.params
    result: dict[str, Any] = {"planned": True, "left_alone": ""}
    try:
        login = Login(*(params[name] for name in LOGIN)) if params["pull_username"] else None
        training = parse_training(params["training"], login)
        settings = Settings(
            log_dir=params["log_dir"],
            isolation_probe=params["isolation_probe"],
            control=params["isolation_control"],
            token_dir=params["token_dir"],
            planning=module.check_mode,
            explain=explained,
        )
    except TrainyardError as error:
        fail(module, error)
        return
    runs: list[Run] = []

    def make_plan() -> Plan:
        try:
            kind = Service if training.shape.back_end == "Deployment" else Run
            run = kind(connect(params["kubeconfig"]), training, settings, Progress(params["progress_file"]))
            runs.append(run)
            if params["state"] == "absent":
                return run.remove_plan()
            plan = run.plan(
                restart=params["state"] == "restarted",
                may_end=params["replace"],
                resume=params["resume"],
                wait=params["wait"],
            )
            result["left_alone"] = run.left_alone
            if run.left_alone:
                module.warn(f"{run.left_alone}. Set workloads_replace={training.name} to end it and run this one.")
            return plan
        except KubeError as error:
            if not (module.check_mode and error.no_answer):
                raise
            result["planned"] = False
            module.warn(f"Not planned: {error}")
            if params["state"] == "absent":
                return unreachable_plan([], str(error))
            return unreachable_plan([*surroundings(training), run_object(training, "")], str(error))

    def make_result() -> dict[str, Any]:
        if runs and runs[0].result:
            result["training"] = runs[0].result
        return result

    run_plan(module, make_plan, make_result)


if __name__ == "__main__":
    main()
