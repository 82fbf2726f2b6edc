"""Render the entries of `host_files` on the controller, like `template`, and pass the texts to the module.

The module's documentation (library/host_files.py) and the tests of the templates describe the keys of an entry.
"""

from __future__ import annotations

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.template import trust_as_template

CONTROL = {"template", "content", "loop", "when", "secret", "also"}
HANDED_ON = {"dest", "owner", "group", "mode", "validate", "block", "own", "ours", "beside"}


class ActionModule(ActionBase):
    """Turns each entry into one file for the module, or into one file for each element of its `loop`."""

    TRANSFERS_FILES = False

    @classmethod
    def finalize_task_arg(cls, name, value, templar, context):
        # The entries use `item`, which exists only in their own loops.
        return value if name == "files" else super().finalize_task_arg(name, value, templar, context)

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        entries = self._task.args.get("files") or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise AnsibleActionFail("host_files: `files` must be a list that is written in the task.")
        files = [file for entry in entries for file in self._files(entry, task_vars)]
        result.update(self._execute_module(module_args={**self._task.args, "files": files}, task_vars=task_vars))
        return result

    def _files(self, entry, task_vars):
        """Yield the files of an entry in the form of the module."""
        self._refuse_unknown(entry)
        if not self._templar.evaluate_conditional(entry.get("when", True)):
            return
        items = self._templar.template(entry["loop"]) if "loop" in entry else [None]
        if not isinstance(items, list):
            raise AnsibleActionFail(f"host_files: the `loop` of {entry['dest']} is not a list.")
        for item in items:
            known = {**task_vars, "item": item} if "loop" in entry else task_vars
            templar = self._templar.copy_with_new_env(available_variables=known)
            file = {key: templar.template(value) for key, value in entry.items() if key in HANDED_ON}
            self._refuse_path(file["dest"])
            text = self._text(entry, known)
            file["also"] = [self._text(entry, {**known, **other}) for other in entry.get("also", [])]
            # A separate option, because Ansible hides either all values of an option or none.
            file["secret_content" if templar.template(entry.get("secret", False)) else "content"] = text or ""
            yield file

    def _text(self, entry, known):
        if "template" in entry:
            return self._rendered(entry["template"], known)
        return self._templar.copy_with_new_env(available_variables=known).template(entry["content"])

    def _refuse_unknown(self, entry):
        unknown = set(entry) - CONTROL - HANDED_ON
        if unknown:
            raise AnsibleActionFail(
                f"host_files: an entry has the unknown key {', '.join(sorted(unknown))}: {sorted(entry)}."
            )
        if "dest" not in entry or ("template" in entry) == ("content" in entry):
            raise AnsibleActionFail(f"host_files: an entry needs dest, and template or content: {sorted(entry)}.")

    def _refuse_path(self, path):
        """Refuse unsafe paths. A part may come from a fact or a lookup, which the validation does not check."""
        if not os.path.isabs(path) or path != os.path.normpath(path) or not path.isprintable():
            raise AnsibleActionFail(f"host_files: {path!r} is not a plain absolute path.")

    def _rendered(self, name, known):
        source = self._find_needle("templates", name)
        folders = [*known.get("ansible_search_path", []), os.path.dirname(source)]
        templar = self._templar.copy_with_new_env(
            searchpath=[path for folder in folders for path in (os.path.join(folder, "templates"), folder)],
            available_variables=known,
        )
        return templar.template(
            trust_as_template(self._loader.get_text_file_contents(source)), escape_backslashes=False
        )
