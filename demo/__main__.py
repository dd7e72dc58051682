"""Publishes real data with and without hedging, prints a table and saves a picture: `python -m demo`."""

import sys


def start() -> int:
    """Runs the demonstration and returns the exit status."""
    # Loading Beam takes seconds, the first time more: a person should know what is going on.
    print("Loading Apache Beam ...", flush=True)
    try:
        from demo.show import main  # noqa: PLC0415
    except KeyboardInterrupt:
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(start())
