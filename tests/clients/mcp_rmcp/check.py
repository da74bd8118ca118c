"""rmcp's client of the Model Context Protocol: every tool over HTTP and over `lkr mcp --server`. Builds a package of its own,
because the client's dependencies are none of lkr's."""

import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
target = os.path.join(os.environ["SCRATCH"], "..", "..", "tools", "client-mcp_rmcp")
command = ["cargo", "run", "--quiet", "--locked", "--manifest-path", os.path.join(here, "Cargo.toml"), "--target-dir", target]
sys.exit(subprocess.run(command, check=False).returncode)
