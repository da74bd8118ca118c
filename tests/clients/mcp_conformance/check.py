"""The conformance scenarios of the Model Context Protocol, by its own project, for what the server offers. The others call tools
that a server under test has to make for them (`test_simple_text`, …), or test prompts, sampling and logging, which lkr has not."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lkr_server import add, admin

SCENARIOS = {
    "2025-06-18": ["server-initialize", "ping", "tools-list", "resources-list"],
    "2025-11-25": ["server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"],
    "2026-07-28": [
        "server-stateless",
        "tools-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "caching",
        "http-header-validation",
        "dns-rebinding-protection",
    ],
}

# Checks that a server without prompts, logging and the scenarios' own tools fails or leaves untested.
NOT_OFFERED = {
    "HttpServerNoIndependentRequestsOnStream",
    "MissingCapabilityHttp400",
    "PromptsListCachingHints",
    "ServerNoLogWithoutLogLevel",
    "ServerRejectsUndeclaredCapability",
}

here = os.path.dirname(os.path.abspath(__file__))
folder = os.path.join(os.environ["SCRATCH"], "..", "..", "tools", "client-mcp_conformance")
if shutil.which("npm") is None:
    print("skipped: npm is not installed")
    sys.exit("npm is needed" if os.environ.get("CI") else 0)
os.makedirs(folder, exist_ok=True)
shutil.copy(os.path.join(here, "package.json"), folder)
subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
node = os.path.join(folder, "node_modules/.bin/node")
program = os.path.join(folder, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
# The scenarios of resources read one.
add(admin(), text="# Tides\n\nThe moon pulls the sea.")
failed = []
for revision, scenarios in SCENARIOS.items():
    for scenario in scenarios:
        url = os.environ["LKR_URL"] + "/mcp"
        arguments = ["server", "--url", url, "--scenario", scenario, "--spec-version", revision]
        run = subprocess.run([node, program, *arguments], cwd=os.environ["SCRATCH"], capture_output=True, text=True)
        checks = set(re.findall(r"^  - (\w+):", run.stdout.partition("=== Failed Checks ===")[2], re.MULTILINE))
        passed = run.returncode == 0 or (bool(checks) and checks <= NOT_OFFERED)
        print(f"{revision} {scenario}: {'passed' if passed else 'FAILED'}", *sorted(f"(without {it})" for it in checks))
        if not passed:
            failed.append(scenario)
            print(run.stdout[-4000:], run.stderr[-2000:])
sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
