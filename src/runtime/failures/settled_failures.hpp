#pragma once

namespace weir::runtime {

/// Checks whether failed operations can still affect operations that have not run, and drops their records if not, so that a
/// program that once had a failure is as fast as before. Host threads call it now and then once anything has failed; must be
/// called under no lock.
void forget_settled_failures() noexcept;

}  // namespace weir::runtime
