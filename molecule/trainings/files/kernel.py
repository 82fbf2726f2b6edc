"""Runs a cell in a kernel of a notebook server, and prints what it prints: kernel.py URL TOKEN-FILE < CELL"""

import json
import sys
import urllib.request
import uuid
from pathlib import Path

from websocket import create_connection

SECONDS = 120


def main(server: str, token: str) -> None:
    request = urllib.request.Request(f"{server}/api/kernels", data=b"{}", method="POST")
    request.add_header("Authorization", f"token {token}")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        kernel = json.load(answer)["id"]
    address = f"{server.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
    channel = create_connection(address, timeout=SECONDS, header=[f"Authorization: token {token}"])
    asked = str(uuid.uuid4())
    header = {"msg_id": asked, "msg_type": "execute_request", "session": asked, "username": "", "version": "5.3"}
    content = {"code": sys.stdin.read(), "silent": False, "store_history": False, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    channel.send(json.dumps(message))
    while True:
        said = json.loads(channel.recv())
        if said["parent_header"].get("msg_id") != asked:
            continue
        if said["msg_type"] == "stream":
            print(said["content"]["text"], end="")
        if said["msg_type"] == "error":
            raise SystemExit("\n".join(said["content"]["traceback"]))
        if said["msg_type"] == "execute_reply":
            return


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8").strip())
