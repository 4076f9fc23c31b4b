"""What can go wrong with an MCP server."""


class McpFailure(Exception):
    """A server didn't do what was asked. The message is for people and models: short, no secrets."""


class NotStarted(McpFailure):
    """There is no connection, and could be made none. Nothing was asked of the server."""


class MissingCredential(McpFailure):
    """The worker doesn't give out a variable that the contract names, or has none of that name."""


class NotAuthorized(McpFailure):
    """The server wants a proof of who asks that could not be given. It did nothing."""


class ConnectionEnded(McpFailure):
    """The connection ended while something was asked; whether it was done is not known."""


class NoAnswer(McpFailure):
    """The server took too long. The connection stays."""


class ServerRefused(McpFailure):
    """The server answered with an error of the protocol, or with what is no valid answer."""


class SessionExpired(ConnectionEnded):
    """An older server has forgotten the session: it has not seen the request."""
