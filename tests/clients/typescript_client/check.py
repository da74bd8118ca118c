"""Generates TypeScript types from the server's OpenAPI document, compiles a client strictly, and runs it with node.

Without node and npm the check is skipped; in CI that is a failure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

URL = os.environ["LKR_URL"]
FOLDER = Path(__file__).parent
WORK = Path(os.environ["SCRATCH"]) / "client"


def run(*command):
    print("+", *command, flush=True)
    subprocess.run(command, cwd=WORK, check=True)


if shutil.which("node") is None or shutil.which("npm") is None:
    print("skipped: the TypeScript client needs node and npm")
    sys.exit(1 if os.environ.get("CI") else 0)

WORK.mkdir()
for name in ["package.json", "tsconfig.json", "story.ts"]:
    shutil.copy(FOLDER / name, WORK)
run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
run("npx", "openapi-typescript", f"{URL}/api/v1/openapi.json", "--output", "generated.ts", "--default-non-nullable=false")
run("npx", "tsc", "--project", "tsconfig.json")
run("node", "out/story.js")
