"""Failure of the sandbox itself."""


class SandboxError(Exception):
    """The sandbox could not do its work: no backend carries out the plan, or the wrapper failed.

    Never raised for what the command did: that is in `Completed`.
    """
