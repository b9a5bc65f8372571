"""What a contributor meets first: hooks, forms and the container run what the project has."""

import json
import re
import shlex
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_hooks_run_the_tools_of_make_check_and_nothing_else():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]  # nothing is fetched
    check = MAKEFILE[MAKEFILE.index("\ncheck:") :].replace("$(BIN)", ".venv/bin")
    for hook in hooks[0]["hooks"]:
        words = shlex.split(hook["entry"])
        commands = words[2].split(" && ") if words[:2] == ["sh", "-c"] else [hook["entry"]]
        for command in commands:
            assert command in check, command


def test_forms_have_what_a_report_needs():
    forms = {
        path.stem: yaml.safe_load(path.read_text("utf-8"))
        for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
        if path.stem != "config"
    }
    assert forms.keys() == {"fault", "wish"}
    for form in forms.values():
        assert form["name"]
        assert form["description"]
        assert all(part["attributes"]["label"] for part in form["body"])
    asked = forms["fault"]["body"][0]["attributes"]["label"]
    assert "rmqctl version -o json" in asked


def test_targets_that_contributing_and_the_template_name_are_there():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    texts = [
        (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
        (ROOT / ".github" / "pull_request_template.md").read_text("utf-8"),
        f"`{container['postCreateCommand']}`",
    ]
    named = {
        name for text in texts for name in re.findall(r"(?:^    +|`)make ([a-z-]+)", text, re.M)
    }
    assert {"install", "test-quick", "check", "test-full"} <= named
    assert named <= targets
