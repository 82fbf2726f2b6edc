"""The Python of a hostile worker: it runs each module with the real one, and changes the answer according to its mode.

`install` writes it to a node with the path of the real Python in its first line. The mode is in the file `mode` beside
it. Only the output of modules, which come on standard input, is changed.
"""

import base64
import json
import os
import subprocess
import sys

MODES = ("honest", "flood", "forged", "warned", "failed", "slow")
TASK = "red | Forged"
JOB = 1
"""Number of a run, which a host cannot know."""
FLOOD = 20_000_000
LINES = 100_000
ESCAPES = "\x1b[31mred\x1b[2J\x1b]52;c;eA==\x07"
TEMPLATE = "{{ lookup('ansible.builtin.pipe', 'touch /tmp/red-node-was-here') }}"


def marker(event):
    """Return an event in the form that ansible-runner recognises in the output."""
    text = base64.b64encode(json.dumps(event).encode()).decode()
    parts = [text[begin : begin + 76] for begin in range(0, len(text), 76)]
    return "\x1b[K" + "".join(f"{part}\x1b[{len(part)}D" for part in parts) + "\x1b[K"


def forged_event(victim):
    """Return a change of a file of another host, in the form that a report accepts."""
    diff = {"prepared": "", "before": {"/etc/red": "a"}, "after": {"/etc/red": "b"}}
    data = {"host": victim, "task": TASK, "role": "base", "task_uuid": "red", "resolved_action": "host_files"}
    data["res"] = {"changed": True, "diff": diff, "steps": ["Write /etc/red"]}
    return {"uuid": "red-red", "event": "runner_on_ok", "job_id": JOB, "event_data": data}


def texts(victim):
    """Return texts that mislead a reader of lines, of escape sequences, or of events."""
    lines = ["", f"changed: [{victim}]", f"ok: [worker2 -> {victim}]", "PLAY RECAP ****", f"{victim} : changed=9"]
    return "\n".join([*lines, ESCAPES, marker(forged_event(victim)) + "x" + marker({})])


def facts(victim):
    """Return facts that would change how Ansible reaches hosts, or that are templates."""
    return {
        "ansible_connection": "local", "ansible_host": victim, "ansible_python_interpreter": "/bin/false",
        "ansible_ssh_executable": "/bin/false", "red": TEMPLATE, TEMPLATE: TEMPLATE, "hostname": victim,
    }  # fmt: skip


def changed(mode, answer, victim):
    """Return the answer of a module as changed by a mode."""
    text = texts(victim)
    if mode == "flood":
        return {**answer, "stdout": "x\n" * (FLOOD // 3)}
    if mode == "failed":
        return {"failed": True, "msg": text, "exception": text, "stderr": text}
    if mode == "slow":
        names = [[f"{number * step % LINES} aaaa\n" for number in range(LINES)] for step in (7, 13)]
        return {**answer, "changed": True, "diff": {"before": "".join(names[0]), "after": "".join(names[1])}}
    found = {"msg": text, "steps": [text], "verdict": "pass", "results": [{"msg": text}], "kind": text, **answer}
    internal = {"_ansible_delegated_vars": {"ansible_host": victim}, "add_host": {"host_name": "red"}}
    found = {**found, "changed": True, "ansible_facts": {**(answer.get("ansible_facts") or {}), **facts(victim)}}
    if mode == "warned":
        return {**found, **internal, "warnings": [text], "deprecations": [{"msg": text, "version": "99"}]}
    # A diff without `before` and `after` is not in any module's format.
    return {**found, "diff": {"prepared": text}}


def main():
    folder = os.path.dirname(os.path.realpath(__file__))
    with open(os.path.join(folder, "mode"), encoding="utf-8") as file:
        mode, victim = file.read().split()
    if len(sys.argv) > 1 or mode == "honest":
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    done = subprocess.run([sys.executable], stdin=sys.stdin.buffer, stdout=subprocess.PIPE, check=False)
    try:
        said = json.dumps(changed(mode, json.loads(done.stdout), victim))
    except ValueError:
        said = done.stdout.decode(errors="replace")
    sys.stdout.write(said)
    sys.stdout.flush()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
