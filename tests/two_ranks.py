"""A script on two processes, launched as people launch it."""

import os
import runpy
import subprocess
import sys


def launch(script: str, *arguments: str) -> str:
    """What the script printed, once both processes ended well."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*launcher, "--nproc-per-node", "2", __file__, script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    # DDP keeps gloo's threads after the group is destroyed, and one that lets go of a tensor
    # while Python tears itself down aborts the process or waits for ever. So there is no tearing.
    sys.stdout.flush()
    os._exit(0)
