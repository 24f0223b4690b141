"""The command line, run as a process of its own."""

import re
import signal
import subprocess
import sys
import time

# Like the installed script; and where the tests run in the background, Ctrl-C is ignored from the
# start, which a new process would inherit.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from vulcan.cli import main; main()"
)


COMMAND = (sys.executable, "-c", PROGRAM)


def interrupt(arguments, when=".", number=signal.SIGINT, delay=0.0):
    """Run a command, send it a signal, and return what it answered.

    The signal is sent after the first line of progress in which `when` is found: a pattern, or the
    percentage that is to be done.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*COMMAND, *arguments, "--progress"], **pipes) as process:
        try:
            for line in process.stderr:
                if "compiling" in line:
                    continue
                told = re.search(when if isinstance(when, str) else r"([0-9.]+) %", line)
                if told and (isinstance(when, str) or float(told[1]) >= when):
                    break
            time.sleep(delay)
            process.send_signal(number)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    return out
