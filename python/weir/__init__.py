"""Streams and events that order themselves.

Arrays know their pending accesses: Weir inserts exactly the device-side waits that are missing, or reports them, and memory is
never reused too early.
"""

from weir import memory, testing
from weir._packages import stream_of
from weir._weir import (
    ArgumentError,
    ArgumentTypeError,
    CopyError,
    Device,
    DeviceError,
    Error,
    Event,
    ExchangeError,
    In,
    InOut,
    MissingLibrary,
    OperationError,
    Out,
    OutOfMemory,
    RaceError,
    StateError,
    Stream,
    __version__,
    adopt,
    create_event,
    create_stream,
    current_stream,
    devices,
    host_task,
    keep_alive,
    parallel,
)

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "CopyError",
    "Device",
    "DeviceError",
    "Error",
    "Event",
    "ExchangeError",
    "In",
    "InOut",
    "MissingLibrary",
    "OperationError",
    "Out",
    "OutOfMemory",
    "RaceError",
    "StateError",
    "Stream",
    "__version__",
    "adopt",
    "create_event",
    "create_stream",
    "current_stream",
    "devices",
    "host_task",
    "keep_alive",
    "memory",
    "parallel",
    "stream_of",
    "testing",
]
