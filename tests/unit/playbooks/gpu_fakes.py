"""Modules, and packages, for runs of the GPU roles on hosts that are this machine."""

from __future__ import annotations

FAKES = {
    "kube_apply": """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
names = {"kubeconfig": {}, "definitions": {"type": "list"}, "record": {}, "record_more": {}}
module = AnsibleModule(names, supports_check_mode=True)
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps(module.params["definitions"]))
module.exit_json(changed=True)
""",
    "nvidia_host": """
from ansible.module_utils.basic import AnsibleModule
import os
names = ("host", "branch", "open_modules", "installed", "signed", "preinstalled")
module = AnsibleModule({name: {} for name in names}, supports_check_mode=True)
# Of a driver that is there, the module refuses what is said of NVSwitches alone.
refusal = os.environ.get("SWITCHES_REFUSED" if module.params["preinstalled"] else "HOST_REFUSES")
if refusal:
    module.fail_json(msg=refusal)
module.exit_json(
    changed=False, kernel="6.12", headers_lacking=["linux-headers-6.12"], gpus=["10de:1eb8"],
    nouveau=True, loaded="", on_disk="",
)
""",
    "gpu_wait": """
import os
from ansible.module_utils.basic import AnsibleModule
names = ("kubeconfig", "name", "setting", "wanted", "all_healthy", "timeout")
module = AnsibleModule({name: {} for name in names}, supports_check_mode=True)
module.exit_json(changed=False, offered=2, unhealthy=int(os.environ["UNHEALTHY"]))
""",
    "node_drain": """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({name: {} for name in ("kubeconfig", "name", "state")}, supports_check_mode=True)
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps([{"drain": module.params["state"]}]))
module.exit_json(changed=True)
""",
    "apt_packages": """
import os, uuid, json
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
lists = {name: {"type": "list", "default": []} for name in ("packages", "may_remove")}
flags = {name: {"type": "bool"} for name in ("hold", "look_up", "may_downgrade")}
module = AnsibleModule({**lists, **flags, "timeout": {}}, supports_check_mode=True)
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps([module.params]))
if (refusal := os.environ.get("APT_REFUSES")) and (module.params["may_remove"] or module.params["look_up"]):
    module.fail_json(msg=refusal)
module.exit_json(changed=True, steps=["Install"])
""",
    "host_files": """
import os, uuid, json
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
names = ("files", "stale", "commands", "timeout")
module = AnsibleModule({name: {"type": "raw"} for name in names}, supports_check_mode=True)
Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps([{"files": module.params["files"]}]))
module.exit_json(changed=True, changed_paths=[])
""",
    "distribution": """
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"name": {}}, supports_check_mode=True)
facts = {"distribution": module.params["name"], "distribution_version": "24.04", "distribution_major_version": "13"}
module.exit_json(changed=False, ansible_facts=facts)
""",
    "gpu_info": """
import json, os, uuid
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
facts = {"source": "nvml", "on_bus": 2, "gpus": [{}, {}], "driver": "580.95.05", "skew": False, "healthy": True}
facts |= json.loads(os.environ.get("GPUS", "{}"))
module = AnsibleModule({"binding": {}, "textfile": {"type": "path"}}, supports_check_mode=True)
if module.params["textfile"]:
    Path(os.environ["TOUCHED"], uuid.uuid4().hex).write_text(json.dumps([module.params["textfile"]]))
module.exit_json(changed=False, ansible_facts={"gpus": facts})
""",
}
"""Stand for modules that need a cluster, a package archive or a GPU: leave what they were given in a file."""

OTHER_DRIVERS = (
    *("nvidia-dkms-535", "nvidia-kernel-source-535-open", "nvidia-kernel-common-535", "nvidia-utils-535"),
    *("libnvidia-compute-535", "libnvidia-cfg1-535", "libcuda1", "nvidia-kernel-open-dkms", "nvidia-alternative"),
    *("libegl-nvidia0", "nvidia-driver-535-server", "linux-modules-nvidia-535-6.8.0-45-generic", "firmware-nvidia-gsp"),
)
STAYS = (
    *("libnvidia-container1", "libnvidia-container-tools", "nvidia-container-toolkit-base", "nvidia-cuda-toolkit"),
    *("linux-image-amd64", "libcudart12", "kubelet"),
    *("nvidia-fabricmanager", "nvidia-fabricmanager-580", "nvidia-fabricmanager-dev-535", "nvidia-imex-580"),
    *("libnvidia-nscq-580", "nvidia-mig-manager", "nvidia-fs-dkms", "nvidia-gds-12-9"),
)
"""Installed packages that make way for a driver, and those that do not."""
