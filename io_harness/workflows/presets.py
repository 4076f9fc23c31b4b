"""Named policies, so that nobody writes one to begin."""

from typing import Literal, NamedTuple

from .rules import Defaults, Layer, Rule

PresetName = Literal["careful", "unattended", "read-only"]

_SECRETS = (
    ".ssh/",
    ".aws/",
    ".azure/",
    ".gnupg/",
    ".kube/",
    "**/.docker/config.json",
    "**/.config/gcloud/",
    "**/.config/gh/",
    "**/.config/io-harness/",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".terraformrc",
    "*.tfstate",
    "*.tfvars",
    "terraform.tfstate.backup",
    "credentials.json",
    "service-account*.json",
    "service_account*.json",
    "client_secret*.json",
    "application_default_credentials.json",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "**/.git/config",
    "**/.cargo/credentials",
    "**/.cargo/credentials.toml",
    "**/.gem/credentials",
    "**/.m2/settings.xml",
    "**/.gradle/gradle.properties",
)


SECRETS = Layer(
    name="secrets",
    rules=(
        Rule(
            effect="deny",
            act=("read", "write"),
            target=".env*",
            unless=(".env.example", ".env.sample", ".env.template", ".env.dist", ".envoy*"),
            match=(".env", "app/.env.production", ".ENV.local", "/home/user/.env"),
            no_match=(".env.example", "src/environment.py"),
        ),
        Rule(
            effect="deny",
            act=("read", "write"),
            target=_SECRETS,
            unless=("id_*.pub", "cacert.pem", "ca-bundle.pem", "ca-certificates.pem"),
            match=(
                "/home/user/.ssh/id_ed25519",
                "deploy/server.PEM",
                "/home/user/.aws/credentials",
            ),
            no_match=("src/keys.py", "docs/ssh.md", "id_rsa.pub", "env/certifi/cacert.pem"),
        ),
    ),
)
"""Files that hold credentials, in any folder and any letter case."""


HARMLESS = Layer(
    name="harmless",
    rules=(
        Rule(
            effect="allow",
            act="exec",
            target=(
                *(
                    "cd",
                    "pwd",
                    "true",
                    "false",
                    ":",
                    "exit",
                    "return",
                    "break",
                    "continue",
                    "shift",
                ),
                *("echo", "printf", "test", "'['", "'[['", "export", "declare", "typeset", "local"),
                *(
                    "readonly",
                    "unset",
                    "read",
                    "set",
                    "shopt",
                    "let",
                    "wait",
                    "umask",
                    "trap",
                    "type",
                ),
                *("pushd", "popd", "dirs", "jobs", "getopts", "ulimit", "times", "hash -r"),
                *(
                    "command",
                    "builtin",
                    "exec",
                    "time",
                    "nohup",
                    "nice",
                    "ionice",
                    "stdbuf",
                    "setsid",
                ),
                *("timeout", "gtimeout", "env", "xargs", "sh -*c $", "bash -*c $", "sleep", "date"),
            ),
            match=("cd src", "timeout 60", "bash -lc", "echo hi", "/usr/bin/env FOO=1"),
            no_match=("bash script.sh", "git push", "./echo", "<dynamic> bash -c"),
            note="does nothing by itself",
        ),
    ),
)
"""Builtins of the shell, and programs that only run another one, which is judged by its own name."""


class Preset(NamedTuple):
    defaults: Defaults
    layers: tuple[Layer, ...]


PRESETS: dict[PresetName, Preset] = {
    # Reading is free, every write and command is shown to a human first.
    "careful": Preset(Defaults(), (SECRETS, HARMLESS)),
    # For runs that nobody watches. It rests on the sandbox and on the run's private copy, not on the
    # parsing of commands: whatever is done in them can be undone, and only verified work lands.
    "unattended": Preset(
        Defaults(write="allow", exec="allow", dynamic="allow", discard="allow", mcp="allow"),
        (SECRETS,),
    ),
    # Looking, without a trace.
    "read-only": Preset(
        Defaults(write="deny", exec="deny", outside="deny", mcp="deny"), (SECRETS,)
    ),
}
