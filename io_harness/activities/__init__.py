"""Everything that touches the world: providers, tools, workspace, verification."""
