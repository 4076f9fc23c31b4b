"""What can go wrong in a tool call and is told to the model: a stable code and one sentence."""


class ToolError(Exception):
    """The call failed and changed nothing. `code` is stable; the message says what to do."""

    code = "tool_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class InvalidArguments(ToolError):
    code = "invalid_arguments"


class UnknownTool(ToolError):
    code = "unknown_tool"


class OutsideWorkspace(ToolError):
    code = "outside_workspace"


class NotFound(ToolError):
    code = "not_found"


class BrokenLink(ToolError):
    code = "broken_link"


class IsADirectory(ToolError):
    code = "is_a_directory"


class NotADirectory(ToolError):
    code = "not_a_directory"


class NotARegularFile(ToolError):
    """A FIFO, socket or device: reading one can block for ever."""

    code = "not_a_regular_file"


class AlreadyExists(ToolError):
    code = "already_exists"


class AccessDenied(ToolError):
    """The operating system refused, not the policy."""

    code = "access_denied"


class TooLarge(ToolError):
    code = "too_large"


class BinaryFile(ToolError):
    code = "binary_file"


class UnsupportedEncoding(ToolError):
    code = "unsupported_encoding"


class NotEncodable(ToolError):
    """The new text has characters that the file's encoding lacks."""

    code = "not_encodable"


class NoMatch(ToolError):
    code = "no_match"


class AmbiguousMatch(ToolError):
    code = "ambiguous_match"


class IdenticalText(ToolError):
    code = "identical_text"


class EmptyText(ToolError):
    code = "empty_text"


class StaleFile(ToolError):
    """The file is no longer what the call was made for."""

    code = "stale_file"


class InvalidPatch(ToolError):
    code = "invalid_patch"


class InvalidPattern(ToolError):
    code = "invalid_pattern"


class UnknownHandle(ToolError):
    code = "unknown_handle"


class JobLost(ToolError):
    code = "job_lost"


class CommandNotStarted(ToolError):
    code = "command_not_started"


class TooManyJobs(ToolError):
    code = "too_many_jobs"


class ToolFailed(ToolError):
    """A tool of a user's own raised an exception."""

    code = "tool_failed"
