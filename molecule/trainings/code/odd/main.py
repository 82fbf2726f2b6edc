"""A program that prints as many do: a bar that overwrites itself, bytes that are no text, a line of 100 KiB.

Its second worker listens on a port that no description names, as NCCL and gloo do.
"""

import json
import os
import socket
import sys
import time

PORT = 40123
SECONDS = 60


def say(**event: object) -> None:
    """Print a line of JSON with numbers as other programs write them: 40.0, and text."""
    print(json.dumps({"time": time.time(), "step": 40.0, **event}), flush=True)


def connect() -> None:
    """Connect to the other worker, which may start later."""
    host = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][1].rpartition(":")[0]
    end = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection((host, PORT), timeout=2).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"{host}:{PORT}: {error}")
            time.sleep(0.5)


if os.environ["JOB_COMPLETION_INDEX"] == "1":
    with socket.create_server(("", PORT)) as server:
        server.accept()
    sys.exit()
print("starting", flush=True)
# Longer than the follower waits between two looks: what comes then is read from a place in the log.
time.sleep(3)
for step in range(1, 41):
    sys.stdout.write(f"\r\x1b[1mstep {step}/40\x1b[0m loss {1 / step:.4f}")
    sys.stdout.flush()
print(flush=True)
for _ in range(5):
    sys.stdout.write("x" * 20_480)
    sys.stdout.flush()
    time.sleep(0.5)
print(" end of the long line\x0cand a form feed", flush=True)
sys.stdout.buffer.write(bytes(each for each in range(256) if each != 10) + b"\n" + os.urandom(4096) + b"\n")
sys.stdout.buffer.write("one line\u2028and the same\x85line\n".encode())
sys.stdout.flush()
time.sleep(3)
connect()
# The bar does not end its line, so that the event follows on it.
print("\r203/300", end="")
say(event="evaluate", accuracy="0.97")
say(event="end", result="passed", accuracy="0.97")
print("last words", end="", flush=True)
