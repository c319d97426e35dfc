"""Where arrays get their memory: limits, statistics, and resources that limit, log, count and fail on purpose."""

from weir._weir.memory import (
    CountingResource,
    FailingResource,
    Resource,
    allocating_stream,
    counting,
    driver_pool,
    failing,
    limit,
    limiting,
    logging,
    poisoning,
    stats,
    trim,
    use,
)

__all__ = [
    "CountingResource",
    "FailingResource",
    "Resource",
    "allocating_stream",
    "counting",
    "driver_pool",
    "failing",
    "limit",
    "limiting",
    "logging",
    "poisoning",
    "stats",
    "trim",
    "use",
]
