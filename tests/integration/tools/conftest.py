from tests.unit.tools.conftest import call, data_dir, root

__all__ = ["call", "data_dir", "root"]
