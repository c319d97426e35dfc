#pragma once

namespace weir::cli {

/// Prints the version and options of this build of Weir and what it finds on this machine.
void print_info();

}  // namespace weir::cli
