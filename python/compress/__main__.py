"""`python -m compress ...`: the command line. Under torchrun its processes run one pipeline together:

    torchrun --nproc-per-node 2 -m compress run pipeline.yaml
"""

import datetime
import os
import sys

from . import _core


def main() -> int:
    words = ["compress", *sys.argv[1:]]
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size < 2 or not {"RANK", "MASTER_ADDR"} <= os.environ.keys():
        return _core.command_line(words, "", 1)
    import torch.distributed

    # Ranks wait while rank 0 works by itself, however long; one that ends is known by its closed connection.
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(days=7))
    here = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    try:
        return _core.command_line(words, torch.distributed.group.WORLD.group_name, here)
    except _core.Error as error:
        print(f"compress: error: {error}", file=sys.stderr)
        return error.code
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
