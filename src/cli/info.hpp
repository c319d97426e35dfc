#pragma once

namespace weir::cli {

/// Prints what this build of Weir is and what it finds on this machine.
void print_info();

}  // namespace weir::cli
