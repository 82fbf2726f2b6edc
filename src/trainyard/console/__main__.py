"""`python -m console`: serve until a signal arrives."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

from ..core.errors import TrainyardError
from .console_config import Config, from_environment
from .views.page_table import PAGES
from .web_server import serving


async def serve(config: Config) -> None:
    """Listen until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with serving(config, PAGES) as running:
        logging.info("The console listens on %s and %s.", running.port, running.tensorboard_port)
        await stopped.wait()


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        config = from_environment(os.environ)
    except TrainyardError as error:
        print(error, file=sys.stderr)
        return 2
    asyncio.run(serve(config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
