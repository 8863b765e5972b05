"""deploy/kubernetes: what the published schemas accept, and what agrees with the settings and the images."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ingest.load_settings import load_settings
from tests.packaging.commands import check_command, option

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
OBJECTS: dict[str, dict[str, Any]] = {
    f"{one['kind']}/{one['metadata']['name']}": one
    for path in FILES
    for one in yaml.safe_load_all(path.read_text())
}
LABEL = "app.kubernetes.io/component"


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    """(component, pod template) of everything that makes pods."""
    for name, one in OBJECTS.items():
        if one["kind"] in ("Deployment", "CronJob"):
            spec = one["spec"]["jobTemplate"]["spec"] if one["kind"] == "CronJob" else one["spec"]
            yield name.rsplit("-", 1)[1], spec["template"]


PODS = dict(templates())


def container(component: str) -> dict[str, Any]:
    (found,) = PODS[component]["spec"]["containers"]
    return dict(found)


def test_the_objects_are_those_that_the_text_names() -> None:
    assert {name for name in OBJECTS if not name.startswith("NetworkPolicy/")} == {
        "ConfigMap/gnomon",
        "CronJob/gnomon-golden",
        "Deployment/gnomon-dashboard",
        "Deployment/gnomon-run",
        "Deployment/gnomon-watch",
        "Namespace/gnomon",
        "PodDisruptionBudget/gnomon-run",
        "Secret/gnomon",
        "Service/gnomon-dashboard",
        "Service/gnomon-run",
        "Service/gnomon-watch",
        "ServiceMonitor/gnomon",
    }
    text = (ROOT / "deploy/kubernetes/README.md").read_text()
    assert all(path.name in text for path in FILES)


# 1.29 is the oldest that knows every field used.
@pytest.mark.parametrize("version", ["1.29.0", kubernetes_validate.latest_version()])
def test_the_published_schemas_accept_each_object(version: str) -> None:
    for one in OBJECTS.values():
        # Of the Prometheus operator: no schema of Kubernetes itself.
        if one["kind"] != "ServiceMonitor":
            kubernetes_validate.validate(one, version, strict=True)


def test_the_schemas_are_strict() -> None:
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        broken = {**OBJECTS["Deployment/gnomon-run"]}
        broken["spec"] = {**broken["spec"], "replica": 2}
        kubernetes_validate.validate(broken, "1.29.0", strict=True)


@pytest.mark.parametrize("component", sorted(PODS))
def test_each_pod_passes_the_restricted_standard(component: str) -> None:
    pod, one = PODS[component]["spec"], container(component)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (
        "USER {runAsUser}:{runAsGroup}".format(**pod["securityContext"]) in (ROOT / "Dockerfile").read_text()
    )
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(one["resources"]) == {"requests", "limits"}
    names = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in one["volumeMounts"]} == names


@pytest.mark.parametrize("component", sorted(PODS))
def test_every_variable_is_a_setting_and_every_secret_a_key(component: str, tmp_path: Path) -> None:
    pod, one = PODS[component]["spec"], container(component)
    mounts = {mount["name"]: mount["mountPath"] for mount in one["volumeMounts"]}
    (secret,) = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert secret["secretName"] == OBJECTS["Secret/gnomon"]["metadata"]["name"]
    mounted = {f"{mounts['secrets']}/{item['path']}": item["key"] for item in secret["items"]}
    assert set(mounted.values()) <= set(OBJECTS["Secret/gnomon"]["stringData"])
    environment = {}
    for variable in one["env"]:
        value = variable["value"]
        if variable["name"].endswith("_FILE"):
            (tmp_path / "secret").write_text(mounted[value])
            value = str(tmp_path / "secret")
        environment[variable["name"]] = value
    config = tmp_path / "gnomon.toml"
    config.write_text(OBJECTS["ConfigMap/gnomon"]["data"]["gnomon.toml"])
    settings = load_settings(config, environment)
    who = "dashboard" if component == "dashboard" else "store"
    assert settings.store.password == f"{who}-password"
    assert settings.store.username == ("gnomon_dashboard" if component == "dashboard" else "gnomon")
    assert option(one["command"], "--config") == f"{mounts['config']}/gnomon.toml"
    check_command(one["command"])
    if component == "run":
        assert settings.operations.port == one["ports"][0]["containerPort"]
        assert settings.operations.host == "0.0.0.0"
        assert PODS["run"]["spec"]["terminationGracePeriodSeconds"] > settings.delivery.drain_seconds
    elif component != "golden":
        assert int(option(one["command"], "--port")) == one["ports"][0]["containerPort"]


def test_images_are_those_of_the_dockerfile_at_the_project_s_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    stages = [
        line.split()[3] for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("FROM")
    ]
    for component in PODS:
        name, tag = container(component)["image"].split(":")
        assert tag == version
        assert name.removeprefix("gnomon/") in stages
        assert name == ("gnomon/dashboard" if component == "dashboard" else "gnomon/pipeline")


def test_probes_ask_named_ports_and_paths_that_are_served() -> None:
    paths = {
        component: {
            kind.removesuffix("Probe"): one[kind]["httpGet"]["path"] for kind in one if kind.endswith("Probe")
        }
        for component in PODS
        for one in [container(component)]
    }
    assert paths == {
        "run": {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"},
        "watch": {"startup": "/metrics", "liveness": "/metrics"},
        "dashboard": dict.fromkeys(("startup", "liveness", "readiness"), "/_stcore/health"),
        "golden": {},
    }
    for component in ("run", "watch", "dashboard"):
        one = container(component)
        named = {one[kind]["httpGet"]["port"] for kind in one if kind.endswith("Probe")}
        assert named == {one["ports"][0]["name"]}


def chosen(selector: dict[str, Any]) -> set[str]:
    """The components whose pods a selector chooses."""
    found = set()
    for component, template in PODS.items():
        labels = template["metadata"]["labels"]
        fits = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
        for one in selector.get("matchExpressions", []):
            assert one["operator"] == "In"
            fits = fits and labels.get(one["key"]) in one["values"]
        if fits:
            found.add(component)
    return found


def test_selectors_choose_the_pods_that_they_mean() -> None:
    for name, one in OBJECTS.items():
        component = name.rsplit("-", 1)[-1]
        if one["kind"] in ("Deployment", "PodDisruptionBudget"):
            assert chosen(one["spec"]["selector"]) == {component}, name
        if one["kind"] == "Service":
            assert chosen({"matchLabels": one["spec"]["selector"]}) == {component}
            (port,) = one["spec"]["ports"]
            declared = container(component)["ports"][0]
            assert (port["targetPort"], port["port"]) == (declared["name"], declared["containerPort"])
    monitor = OBJECTS["ServiceMonitor/gnomon"]["spec"]
    assert chosen(monitor["selector"]) == {"run", "watch"}
    services = [one for one in OBJECTS.values() if one["kind"] == "Service"]
    by_label = {one["metadata"]["labels"][LABEL]: one["spec"]["ports"][0]["name"] for one in services}
    assert {by_label["run"], by_label["watch"]} == {monitor["endpoints"][0]["port"]}


def test_one_process_watches_and_a_rollout_takes_one_consumer_at_a_time() -> None:
    watch, run = OBJECTS["Deployment/gnomon-watch"]["spec"], OBJECTS["Deployment/gnomon-run"]["spec"]
    assert (watch["replicas"], watch["strategy"]) == (1, {"type": "Recreate"})
    assert run["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_the_network_allows_what_the_settings_name_and_nothing_else() -> None:
    policies = {
        name.split("/gnomon-")[1]: one["spec"] for name, one in OBJECTS.items() if "NetworkPolicy" in name
    }
    assert policies.pop("nothing-else") == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    allowed = set()
    for policy in policies.values():
        for rule in policy.get("egress", []) + policy.get("ingress", []):
            (peer,) = rule.get("to", []) + rule.get("from", [])
            namespace = peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
            for component in chosen(policy["podSelector"]):
                allowed |= {(component, namespace, port["port"]) for port in rule["ports"]}
    for component in PODS:
        assert {(component, "kube-system", 53), (component, "clickhouse", 8123)} <= allowed
    assert {one for one in allowed if one[1] == "kafka"} == {("run", "kafka", 9092)}
    models = {("run", "models", 8000), ("watch", "models", 8000), ("golden", "models", 8000)}
    assert {one for one in allowed if one[1] == "models"} == models
    assert not [
        one for one in allowed if one[0] == "dashboard" and one[1] not in ("kube-system", "clickhouse")
    ]
    settings = OBJECTS["ConfigMap/gnomon"]["data"]["gnomon.toml"]
    for url in ("kafka.kafka:9092", "clickhouse.clickhouse:8123", ".models:8000"):
        assert url in settings
