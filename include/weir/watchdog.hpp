// Reports why the host waits for so long. Layer: runtime.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "weir/export.hpp"

namespace weir {

/// Reports every wait of the host's that sees no progress for `patience`, once: what the host waits for, what that waits for on which
/// stream, and so on to the cause, with labels and source lines. Applies to any wait: `synchronize`, events, host views, memory that must
/// be waited for. The wait itself continues.
///
/// `report` gets the text, on the thread that waits, under no lock of Weir's; by default it goes to the standard error output. It may use
/// Weir, must not throw, and must not wait for what its thread waits for. A patience of 0 switches the watchdog off. Waits in progress keep
/// the settings with which they began. Progress is checked four times in each patience, so the report may come up to a quarter late. Costs
/// no thread, and nothing if waits are short.
///
/// At first the patience is WEIR_WATCHDOG seconds, a number such as 2.5, if that is in the environment, else 60.
WEIR_EXPORT void set_watchdog(std::chrono::milliseconds patience, std::function<void(const std::string&)> report = {});

}  // namespace weir
