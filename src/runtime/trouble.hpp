#pragma once

namespace weir::runtime {

/// Looks whether what failed operations left behind can still concern operations that have not run, and lets go of it if
/// not, so that a program that once had a failure is as fast as before. Called by host threads now and then, once anything
/// has failed; under no lock.
void ease_trouble() noexcept;

}  // namespace weir::runtime
