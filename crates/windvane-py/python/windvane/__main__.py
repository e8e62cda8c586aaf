"""The command `windvane`."""

import os
import shutil
import signal
import sys
import sysconfig

from windvane import _core


def main() -> None:
    """Run the command with the arguments of this process, and exit with its code."""
    # As in any program: what does not wait for Ctrl-C ends by it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started) != "windvane" or not os.access(started, os.X_OK):
        # `python -m windvane`: the script beside the interpreter is the program to start again.
        started = shutil.which("windvane", path=sysconfig.get_path("scripts")) or ""
    sys.exit(_core.main(["windvane", *sys.argv[1:]], started or None))


if __name__ == "__main__":
    main()
