"""The calls of kernel32 and ntdll that job objects need. Each raises `OSError`."""

from __future__ import annotations

import ctypes
import sys

from . import structures
from .structures import Accounting, ExtendedLimits

if sys.platform == "win32":
    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _ntdll = ctypes.WinDLL("ntdll")
    _kernel32.CreateJobObjectW.restype = ctypes.c_void_p

    def _checked(result: int, what: str) -> int:
        if not result:
            raise OSError(ctypes.get_last_error(), f"{what} failed")
        return result

    def create_job(limits: ExtendedLimits) -> int:
        """A job with these limits, whose processes end with its last handle."""
        job = _checked(_kernel32.CreateJobObjectW(None, None), "CreateJobObject")
        handle = ctypes.c_void_p(job)
        restrictions = ctypes.c_uint32(structures.UI_RESTRICTIONS)
        for kind, value in (
            (structures.EXTENDED_LIMIT_INFORMATION, limits),
            (structures.BASIC_UI_RESTRICTIONS, restrictions),
        ):
            done = _kernel32.SetInformationJobObject(
                handle, kind, ctypes.byref(value), ctypes.sizeof(value)
            )
            _checked(done, "SetInformationJobObject")
        return job

    def assign(job: int, process: int) -> None:
        """Puts a process into the job. Whatever it starts later is in it too."""
        done = _kernel32.AssignProcessToJobObject(ctypes.c_void_p(job), ctypes.c_void_p(process))
        _checked(done, "AssignProcessToJobObject")

    def resume(process: int) -> None:
        """Lets a process run that was started suspended."""
        status = _ntdll.NtResumeProcess(ctypes.c_void_p(process))
        if status != 0:
            raise OSError(f"NtResumeProcess failed with status {status & 0xFFFFFFFF:#x}")

    def terminate(job: int, code: int) -> None:
        """Ends every process of the job."""
        _checked(_kernel32.TerminateJobObject(ctypes.c_void_p(job), code), "TerminateJobObject")

    def _query(job: int, kind: int, into: ctypes.Structure) -> None:
        done = _kernel32.QueryInformationJobObject(
            ctypes.c_void_p(job), kind, ctypes.byref(into), ctypes.sizeof(into), None
        )
        _checked(done, "QueryInformationJobObject")

    def accounting(job: int) -> Accounting:
        found = Accounting()
        _query(job, structures.BASIC_ACCOUNTING_INFORMATION, found)
        return found

    def peak_memory(job: int) -> int:
        """Most memory that the job had committed at once, in bytes."""
        found = ExtendedLimits()
        _query(job, structures.EXTENDED_LIMIT_INFORMATION, found)
        return int(found.PeakJobMemoryUsed)

    def close(handle: int) -> None:
        _checked(_kernel32.CloseHandle(ctypes.c_void_p(handle)), "CloseHandle")

else:

    def _absent() -> OSError:
        return OSError("job objects are Windows'")

    def create_job(limits: ExtendedLimits) -> int:
        raise _absent()

    def assign(job: int, process: int) -> None:
        raise _absent()

    def resume(process: int) -> None:
        raise _absent()

    def terminate(job: int, code: int) -> None:
        raise _absent()

    def accounting(job: int) -> Accounting:
        raise _absent()

    def peak_memory(job: int) -> int:
        raise _absent()

    def close(handle: int) -> None:
        raise _absent()
