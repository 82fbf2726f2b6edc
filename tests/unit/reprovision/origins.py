"""A git repository somewhere else, with people who sign in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from trainyard.schedule.repository import Repository, Wanted

LOCK = "artefacts: {{kubernetes: {{version: {}}}}}\n"


class Origin:
    """A checkout somewhere else, whose owner and a stranger have keys."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "origin"
        self.keys = folder / "keys"
        self.keys.mkdir()
        for name in ("owner", "stranger"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.keys / name)], check=True
            )
        self.signers = self.keys / "allowed_signers"
        self.signers.write_text(f"owner {(self.keys / 'owner.pub').read_text()}", encoding="utf-8")
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(self.path)], check=True)
        self.commit("v1.36.3", "owner")

    def git(self, *words: str) -> str:
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {**os.environ, **names, "GIT_CONFIG_GLOBAL": "/dev/null"}
        done = subprocess.run(
            ["git", "-C", str(self.path), *words], env=env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def sign(self, key: str, *words: str) -> None:
        self.git("-c", "gpg.format=ssh", "-c", f"user.signingkey={self.keys / key}", *words)

    def commit(self, kubernetes: str, key: str = "", packages: str = "one==1") -> str:
        (self.path / "bundle.lock.yml").write_text(LOCK.format(kubernetes), encoding="utf-8")
        (self.path / "requirements.txt").write_text(f"{packages}\n", encoding="utf-8")
        self.git("add", "-A")
        words = ("commit", "--quiet", "--allow-empty", "-m", "x")
        self.sign(key, *words, "-S") if key else self.git(*words)
        return self.git("rev-parse", "HEAD")

    def wanted(self, ref: str = "main", *, signed: bool = True, requirements: str = "") -> Wanted:
        return Wanted(str(self.path), ref, self.signers if signed else None, requirements)


def bare(folder: Path) -> Repository:
    """The empty repository of a schedule."""
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder / "bare")], check=True)
    (folder / "worktrees").mkdir()
    return Repository(folder / "bare", folder / "worktrees")
