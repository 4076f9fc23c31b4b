"""MCP servers as sources of tools, under the policy that holds for every other tool."""
