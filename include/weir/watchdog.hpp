// Tells why the host waits for so long. Layer: runtime.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "weir/export.hpp"

namespace weir {

/// Has every wait of the host's that sees no progress for `patience` told of, once: what the host waits for, what that
/// waits for on which stream, and so on down to what holds all of it up, with labels and source lines. Any wait:
/// `synchronize`, events, host views, memory that has to be waited for. The wait itself goes on.
///
/// `report` gets the text, on the thread that waits, under no lock of Weir's; by default it goes to the standard error
/// output. It may use Weir, must not throw, and must not wait for what its thread waits for. A patience of 0 switches the
/// watchdog off. Waits that are under way keep what was set when they began. Progress is looked for four times in each
/// patience, so the report comes up to a quarter late. Costs no thread, and nothing where waits are short.
///
/// At first the patience is WEIR_WATCHDOG seconds, a number such as 2.5, if that is in the environment, else 60.
WEIR_EXPORT void set_watchdog(std::chrono::milliseconds patience, std::function<void(const std::string&)> report = {});

}  // namespace weir
