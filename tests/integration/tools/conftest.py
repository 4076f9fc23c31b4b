from tests.unit.tools.conftest import call, data_dir, jobs, root

__all__ = ["call", "data_dir", "jobs", "root"]
