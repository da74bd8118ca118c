#!/usr/bin/env python3
"""Lint the Helm chart, render it with its own values and with each file in `ci`, and validate the rendered objects.

usage: check_chart.py CHART
       check_chart.py CHART --configurations    prints the variables of each container as JSON instead

`cargo xtask deploy` runs it. Needs helm-python-sdk, which is Helm as a library, kubernetes-validate and pyyaml.
"""

import json
import sys
from pathlib import Path

import helm_python as helm
import kubernetes_validate
import yaml

# The oldest and the newest version of Kubernetes that the objects are validated against.
VERSIONS = ("1.30", "1.34")

# Kinds of other projects, whose schemas are not at hand.
FOREIGN = {"ScaledObject"}

# What runs pods.
WORKLOADS = {"Deployment", "StatefulSet"}

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


def check_references(objects: list) -> None:
    """What scales pods, protects or selects them names pods that exist, and a pod has each volume that it mounts."""
    workloads = [each for each in objects if each["kind"] in WORKLOADS]
    names = {(each["kind"], each["metadata"]["name"]) for each in workloads}
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in workloads]
    for each in objects:
        spec = each.get("spec", {})
        if "scaleTargetRef" in spec:
            target = spec["scaleTargetRef"]
            assert (target["kind"], target["name"]) in names, f"{each['kind']} scales {target}, of {names}"
        selector = spec.get("selector", spec.get("podSelector"))
        if selector:
            wanted = selector.get("matchLabels", selector).items()
            assert any(wanted <= has.items() for has in labels), f"{each['kind']} selects no pod: {wanted}"
    for each in workloads:
        pod, claims = each["spec"]["template"]["spec"], each["spec"].get("volumeClaimTemplates", [])
        has = [volume["name"] for volume in pod["volumes"]] + [claim["metadata"]["name"] for claim in claims]
        mounts = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert sorted(has) == sorted(mounts), f"{each['metadata']['name']} mounts {mounts} of {has}"


def check_folders_of_servers(objects: list, values: dict) -> None:
    """A folder that must survive its pod is a claim."""
    for each in objects:
        part = each["metadata"]["labels"].get("app.kubernetes.io/component")
        if each["kind"] not in WORKLOADS:
            continue
        given = values.get("scaled", {}).get(part, {}).get("persistence", {})
        keeps = given.get("enabled", part != "worker")
        assert (each["kind"] == "StatefulSet") == keeps, f"{part} is a {each['kind']}"


def configurations(objects: list) -> dict:
    """The variables of the container in each pod, without those of secrets."""
    maps = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
    found = {}
    for each in (each for each in objects if each["kind"] in WORKLOADS):
        variables = {}
        for container in each["spec"]["template"]["spec"]["containers"]:
            for source in container["envFrom"]:
                if "configMapRef" in source:
                    variables |= maps[source["configMapRef"]["name"]]
            variables |= {variable["name"]: variable["value"] for variable in container["env"]}
        found[each["metadata"]["name"]] = variables
    return found


def refused(chart: Path, values: dict) -> bool:
    try:
        render(chart, values)
    except helm.HelmError:
        return True
    return False


def main() -> None:
    chart = Path(sys.argv[1])
    samples = {"values.yaml": {}}
    for path in sorted(chart.glob("ci/*-values.yaml")):
        samples[path.name] = yaml.safe_load(path.read_text())
    if "--configurations" in sys.argv:
        rendered = {name: configurations(render(chart, values)) for name, values in samples.items()}
        print(json.dumps(rendered))
        return
    for name, values in samples.items():
        lint(chart, values)
        objects = render(chart, values)
        validate(objects)
        check_references(objects)
        check_folders_of_servers(objects, values)
        print(f"{name}: {', '.join(sorted(each['kind'] for each in objects))}")
    persistence = {"enabled": True, "size": "4 GB"}
    scaled = samples["scaled-values.yaml"]
    for wrong in (
        {"mode": "scaled"},
        {"mode": "many"},
        {"replicas": 3},
        {"config": {"PATH": "/"}},
        scaled | {"scaled": scaled["scaled"] | {"api": {"persistence": persistence}}},
    ):
        if not refused(chart, wrong):
            raise SystemExit(f"the chart accepts {wrong}")


main()
