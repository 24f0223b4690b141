"""The command line, run as a process of its own."""

import re
import signal
import subprocess
import sys

# Like the installed script; and where the tests run in the background, Ctrl-C is ignored from the
# start, which a new process would inherit.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from vulcan.cli import main; main()"
)


COMMAND = (sys.executable, "-c", PROGRAM)


def interrupt(arguments, percent):
    """Run a command, send Ctrl-C when this many percent are done, and return what it answered."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*COMMAND, *arguments, "--progress"], **pipes) as process:
        try:
            for line in process.stderr:
                told = re.search(r"([0-9.]+) %", line)
                if told and float(told[1]) >= percent:
                    break
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
    return out
