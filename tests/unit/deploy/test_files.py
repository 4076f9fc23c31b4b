"""The files in docker/, as far as they can be judged without a container engine."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml
from compose_spec import PyCompose

from io_harness.cli import group
from io_harness.workflows.attributes import NAMES
from scripts.reference import ENVIRONMENT

DOCKER = Path(__file__).parents[3] / "docker"
KUBERNETES = "1.33"
HARDENED = {"no-new-privileges:true"}
NAMESPACES = {"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"}
"""Without these bubblewrap can't make its namespaces in a container."""


def text(name: str) -> str:
    return (DOCKER / name).read_text(encoding="utf-8")


def interpolated() -> str:
    """The compose file with the variables of docker/.env set."""
    return re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda m: m[1] or "x", text("compose.yaml"))


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(interpolated())
    return found


def manifests() -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in yaml.safe_load_all(text("kubernetes.yaml"))}


def container() -> dict[str, Any]:
    found: dict[str, Any] = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    return found


def options_of(words: list[str]) -> None:
    """Check that the command line of a container exists."""
    command = group.commands[words[0]]
    assert isinstance(command, click.Command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_hadolint_has_nothing_to_say_of_the_dockerfile() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [hadolint, DOCKER / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    bad = subprocess.run(
        [hadolint, "-"],
        input="FROM debian\nRUN cd /tmp\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert bad.returncode != 0  # the control


def test_the_image_runs_as_nobody_in_particular_under_an_init() -> None:
    dockerfile = text("Dockerfile")
    assert re.findall(r"^USER (.*)$", dockerfile, re.M) == ["10001:10001"]
    assert 'ENTRYPOINT ["tini", "--", "io-harness"]' in dockerfile
    for package in ("bubblewrap", "git", "tini"):
        assert package in dockerfile
    (command,) = re.findall(r"^CMD (\[.*\])$", dockerfile, re.M)
    options_of(yaml.safe_load(command))


def test_the_image_sees_no_more_of_the_repository_than_it_installs() -> None:
    allowed = [line for line in text("Dockerfile.dockerignore").splitlines() if line[0] == "!"]
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text("Dockerfile"), re.M)
    assert {line[1:] for line in allowed} == {name for line in copied for name in line.split()}


def test_compose_is_valid_under_the_compose_specification() -> None:
    assert set(PyCompose.from_yaml(interpolated()).service_names()) == set(compose()["services"])
    with pytest.raises(Exception, match="prots"):  # the control
        PyCompose.from_yaml("services: {a: {image: b, prots: ['80']}}")


def test_compose_publishes_on_the_loopback_interface_alone() -> None:
    published = [p for s in compose()["services"].values() for p in s.get("ports", ())]
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_compose_services_wait_for_what_they_need() -> None:
    services = compose()["services"]
    for name, service in services.items():
        needed = service.get("depends_on", {})
        for other in needed:
            assert other in services, name
            if isinstance(needed, dict) and needed[other]["condition"] == "service_healthy":
                assert "healthcheck" in services[other], other


def test_the_worker_of_compose_is_hardened_and_can_hold_commands() -> None:
    worker = compose()["services"]["worker"]
    assert set(worker["security_opt"]) == HARDENED | NAMESPACES
    assert worker["cap_drop"] == ["ALL"]
    assert worker["read_only"] is True
    assert "privileged" not in worker
    assert worker["stop_grace_period"] == "30s"
    options_of(compose()["services"]["codec-server"]["command"])


def test_every_search_attribute_is_registered() -> None:
    registered = dict(re.findall(r"^add (\w+) (\w+)$", text("register.sh"), re.M))
    assert registered == dict(NAMES)


@pytest.mark.parametrize("name", ["setup.sh", "register.sh"])
def test_scripts_can_be_read_by_a_shell(name: str) -> None:
    subprocess.run(["sh", "-n", DOCKER / name], check=True)


def test_the_manifests_are_valid_under_the_schemas_of_kubernetes() -> None:
    for each in manifests().values():
        kubernetes_validate.validate(each, KUBERNETES, strict=True)
    wrong = manifests()["Deployment"]
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):  # the control
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_pod_is_hardened_and_can_hold_commands() -> None:
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    context = container()["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["hostUsers"] is False
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["procMount"] == "Unmasked"
    assert pod["terminationGracePeriodSeconds"] > 10


def test_probes_and_worker_agree_on_the_health_file() -> None:
    (path,) = re.findall(r'"--health-file", "([^"]+)"', text("Dockerfile"))
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert path in " ".join(container()[probe]["exec"]["command"])
    assert f"find {path}" in text("Dockerfile")


def test_every_variable_is_one_that_is_read() -> None:
    of_compose = compose()["services"]["worker"]["environment"]
    of_pod = {each["name"] for each in container()["env"]}
    of_image = set(re.findall(r"\b(IO_HARNESS_\w+)=", text("Dockerfile")))
    for name in {*of_compose, *of_pod, *of_image}:
        assert name.removesuffix("_FILE") in ENVIRONMENT, name
