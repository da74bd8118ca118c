#!/usr/bin/env python3
"""Lint the Helm chart, render it in both modes, and validate the rendered objects.

usage: check_chart.py CHART

`cargo xtask deploy` runs it. Needs helm-python-sdk, which is Helm as a library, kubernetes-validate and pyyaml.
"""

import sys
from pathlib import Path

import helm_python as helm
import kubernetes_validate
import yaml

# The oldest and the newest version of Kubernetes that the objects are validated against.
VERSIONS = ("1.30", "1.34")

# Kinds of other projects, whose schemas are not at hand.
FOREIGN = {"ScaledObject"}

# The severity of a warning in a report of Helm; errors are above.
WARNING = 2


def lint(chart: Path, values: dict) -> None:
    report = helm.lint(chart, values)
    found = [message for message in report["messages"] if message["severity"] >= WARNING]
    if found or report["errors"]:
        raise SystemExit(f"helm lint: {found} {report['errors']}")


def render(chart: Path, values: dict) -> list:
    with helm.Chart.load(chart) as loaded:
        loaded.validate_schema(values)
        files = loaded.render(values, name="kb", namespace="search")
    notes = [text for name, text in files.items() if name.endswith("NOTES.txt")]
    assert len(notes) == 1 and "lkr" in notes[0], "the notes are empty"
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def validate(objects: list) -> None:
    for each in objects:
        if each["kind"] in FOREIGN:
            continue
        for version in VERSIONS:
            kubernetes_validate.validate(each, version, strict=True)


def refused(chart: Path, values: dict) -> bool:
    try:
        render(chart, values)
    except helm.HelmError:
        return True
    return False


def main() -> None:
    chart = Path(sys.argv[1])
    scaled = yaml.safe_load((chart / "ci/scaled-values.yaml").read_text())
    for name, values in (("embedded", {}), ("scaled", scaled)):
        lint(chart, values)
        objects = render(chart, values)
        validate(objects)
        print(f"{name}: {', '.join(sorted(each['kind'] for each in objects))}")
    for wrong in ({"mode": "scaled"}, {"mode": "many"}, {"replicas": 3}, {"config": {"PATH": "/"}}):
        if not refused(chart, wrong):
            raise SystemExit(f"the chart accepts {wrong}")


main()
