"""What each backend is expected to let through. Everything else it must hold.

Better than expected fails as well, so that this table stays true.
"""

from __future__ import annotations

from collections.abc import Mapping

UNGUARDED = frozenset({"linux-landlock"})
"""Backends that refuse a plan with protected or hidden paths inside the workspace, and so are
attacked without."""

BREACHED: Mapping[str, frozenset[str]] = {
    "linux-bubblewrap": frozenset(),
    "linux-namespaces": frozenset(),
    # Landlock rules on access to the content of files: it hides no processes, addresses or host
    # names, and leaves modes, times and attributes alone.
    "linux-landlock": frozenset(
        {
            # later
            "change_git_configuration",
            "change_hook",
            "change_present_envrc",
            "configure_worktree",
            "create_absent_configuration",
            "create_absent_editor_tasks",
            "create_commit_hook_of_husky",
            "create_development_container",
            "create_own_configuration",
            "exchange_absent_configuration",
            "exchange_repository",
            "move_hooks",
            "move_repository_away",
            "plant_hook",
            "redirect_git_configuration",
            "rename_over_absent_directory",
            "rename_over_envrc",
            "replace_git_configuration",
            "replace_hooks",
            "replace_repository_by_link",
            "unlink_git_configuration",
            # network
            "see_connections_of_host",
            "see_interfaces_of_host",
            "see_routes_of_host",
            "see_unix_sockets_of_host",
            # observing
            "find_process",
            "find_system_v_memory",
            "find_system_v_queue",
            "see_command_line",
            "see_host_name",
            "see_mounts_of_host",
            "set_affinity_of_process",
            "set_limits_of_process",
            "set_priority_of_process",
            "use_first_process_without_filter",
            # privilege
            "keep_bounding_set",
            # reading
            "learn_that_a_file_exists",
            "read_hidden_by_hard_link",
            "read_hidden_directory",
            "read_hidden_file",
            # writing
            "change_attributes",
            "change_mode",
            "change_times",
        }
    ),
}
BREACHED_AS_ORDINARY_USER: Mapping[str, frozenset[str]] = {}
"""Besides, where the sandbox runs as its caller."""


def expected_breaches(backend: str, *, root: bool) -> frozenset[str]:
    more = frozenset() if root else BREACHED_AS_ORDINARY_USER.get(backend, frozenset())
    return BREACHED[backend] | more
