"""The manifests for Kubernetes: valid, with settings, images and limits of the other documents."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from dealer import __version__
from dealer.config.settings import SETTINGS
from dealer.gateway import Limits
from dealer.gateway.ops import NEW_TABLES
from tests.distributions.tools import PYTHON, ROOT, python_with, run

pytestmark = pytest.mark.slow

FILES = sorted((ROOT / ".kubernetes").glob("*.yml"))
COMPOSE = (ROOT / "docker-compose.yml").read_text("utf-8")


@pytest.fixture(scope="module")
def manifests() -> dict[str, list[dict[str, Any]]]:
    """The documents of each file, by its name."""
    python_with("yaml", "kubernetes-validate")
    program = (
        "import json, sys, yaml\n"
        "print(json.dumps([list(yaml.safe_load_all(open(file))) for file in sys.argv[1:]]))"
    )
    parsed = json.loads(run([PYTHON, "-c", program, *FILES]))
    return {file.name: each for file, each in zip(FILES, parsed, strict=True)}


def one(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents if each["kind"] == kind)
    return found


def pods(manifests: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The specifications of all pods."""
    documents = [each for listed in manifests.values() for each in listed]
    templates = [
        each["spec"]["template"] for each in documents if "template" in each.get("spec", ())
    ]
    found = [template["spec"] for template in templates]
    assert len(found) == 3
    return found


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def test_they_are_valid() -> None:
    """By the schemas of the newest release that the validator has, without a network."""
    validate = python_with("kubernetes_validate", "kubernetes-validate")
    assert [file.name for file in FILES] == ["migrate.yml", "postgres.yml", "sqlite.yml"]
    run([*validate, "--strict", *FILES])


def test_each_container_has_only_the_privileges_that_it_needs(manifests) -> None:
    for pod in pods(manifests):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for each in containers(pod):
            assert each["securityContext"]["allowPrivilegeEscalation"] is False
            assert each["securityContext"]["readOnlyRootFilesystem"] is True
            assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert each["resources"]["limits"]["memory"]
            assert set(each["resources"]["requests"]) == {"cpu", "memory"}


def test_only_settings_that_exist_are_set(manifests) -> None:
    """Also not by the cluster, which would set DEALER_PORT for a Service named dealer."""
    known = {setting.variable for setting in SETTINGS}
    for name in ("sqlite.yml", "postgres.yml"):
        settings = one(manifests[name], "ConfigMap")["data"]
        assert set(settings) <= known
        assert not re.search(r"://[^@/]*:[^@/]*@", " ".join(settings.values()))  # a password
    for pod in pods(manifests):
        assert pod["enableServiceLinks"] is False
        for each in containers(pod):
            named = {pair["name"] for pair in each.get("env", ()) if "dealer:" in each["image"]}
            assert named <= known


@pytest.mark.parametrize("name", ["sqlite.yml", "postgres.yml"])
def test_a_pod_drains_before_it_ends(manifests, name: str) -> None:
    pod = one(manifests[name], "StatefulSet")["spec"]["template"]["spec"]
    (node,) = pod["containers"]
    waits = int(node["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > waits + Limits().drain
    ports = {port["name"]: port["containerPort"] for port in node["ports"]}
    assert ports == {"players": 8080, "ops": 9090}
    assert node["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "ops"}
    assert node["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "ops"}
    # It waits for the current key of the house; later, a rotation takes no pod out of the Service.
    assert node["startupProbe"]["httpGet"] == {"path": f"/readyz?{NEW_TABLES}", "port": "ops"}


@pytest.mark.parametrize("name", ["sqlite.yml", "postgres.yml"])
def test_one_pod_at_a_time_is_unavailable(manifests, name: str) -> None:
    budget, nodes = one(manifests[name], "PodDisruptionBudget"), one(manifests[name], "StatefulSet")
    assert budget["spec"]["maxUnavailable"] == 1
    labels = nodes["spec"]["template"]["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert one(manifests[name], "Service")["spec"]["selector"] == labels
    assert nodes["spec"]["replicas"] == (1 if name == "sqlite.yml" else 2)


@pytest.mark.parametrize("name", ["sqlite.yml", "postgres.yml"])
def test_players_reach_the_service_through_a_named_class_of_ingress(manifests, name: str) -> None:
    ingress, policy = one(manifests[name], "Ingress"), one(manifests[name], "NetworkPolicy")
    assert ingress["spec"]["ingressClassName"] == "nginx"
    (players, _) = policy["spec"]["ingress"]
    controller = players["from"][0]["namespaceSelector"]["matchLabels"].values()
    assert list(controller) == ["ingress-nginx"]


def test_all_nodes_have_one_folder_of_marks(manifests) -> None:
    claim = one(manifests["postgres.yml"], "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    spec = one(manifests["postgres.yml"], "StatefulSet")["spec"]
    assert "volumeClaimTemplates" not in spec
    (marks,) = (each for each in spec["template"]["spec"]["volumes"] if each["name"] == "marks")
    assert marks["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}


def test_the_images_are_those_of_compose(manifests) -> None:
    named = {each["image"] for pod in pods(manifests) for each in containers(pod)}
    assert f"dealer:{__version__}" in named
    for image in named:
        assert re.search(rf"image: (&\w+ )?{re.escape(image)}\n", COMPOSE), image


def test_the_key_is_a_file_that_only_the_server_reads(manifests) -> None:
    """The server refuses a key that a group may read, as mounted Secrets are."""
    pod = one(manifests["postgres.yml"], "StatefulSet")["spec"]["template"]["spec"]
    (key,) = pod["initContainers"]
    assert key["command"][2] == "install -m 600 /secret/key* /house/"
    settings = one(manifests["postgres.yml"], "ConfigMap")["data"]
    assert settings["DEALER_HOUSE_KEY_FILE"] == "/house/key"
    (node,) = pod["containers"]
    paths = {mount["mountPath"] for mount in node["volumeMounts"]}
    assert {settings["DEALER_MARKS"], "/house", "/secrets", "/tmp"} == paths
    assert settings["DEALER_DATABASE_PASSWORD_FILE"] == "/secrets/node_password"
