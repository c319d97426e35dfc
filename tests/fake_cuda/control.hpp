// What tests tell and ask the fake driver. tests/support/fake_cuda.hpp has a class over these.
#pragma once

#include <cstddef>

#include "cuda.hpp"

/// How often a function of the driver was called by its name, or all of them if it is null.
WEIR_FAKE_EXPORT unsigned long long weir_fake_calls(const char* name);
/// How often the calling thread did: not by what watches the streams, say.
WEIR_FAKE_EXPORT unsigned long long weir_fake_own_calls(const char* name);
/// The name of one function of those that were called, by their alphabet; null if there are no more.
WEIR_FAKE_EXPORT const char* weir_fake_called(std::size_t index);
/// Begins to count anew: all calls, and those of the calling thread.
WEIR_FAKE_EXPORT void weir_fake_forget_calls();

/// The nth call from now (1: the next) of the function, or of any if the name is null, returns the error and does nothing
/// else; then also all later ones, if it is for good. "Any" leaves out what does not fail in practice: the current context,
/// the capture mode, versions and texts.
WEIR_FAKE_EXPORT void weir_fake_fail(const char* name, unsigned long long nth, int error, int for_good);
/// The calling thread's next call of the function returns the error and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_fail_own(const char* name, int error);
/// At the nth call from now of the function there is a sticky error, as of a kernel that traps just then; it returns that.
WEIR_FAKE_EXPORT void weir_fake_break_at(const char* name, unsigned long long nth, int error);
WEIR_FAKE_EXPORT void weir_fake_fail_no_more();

/// The calling thread's next call of the function waits before it does anything.
WEIR_FAKE_EXPORT void weir_fake_stop(const char* name);
/// The next call of the function by any thread does. Threads that call it meanwhile wait as well.
WEIR_FAKE_EXPORT void weir_fake_stop_any(const char* name);
/// It goes on, to its next call of another function (null: for good).
WEIR_FAKE_EXPORT void weir_fake_go_on(const char* next);
/// Whether it waits.
WEIR_FAKE_EXPORT int weir_fake_is_stopped();

enum weir_fake_thing {
    weir_fake_streams,
    weir_fake_events,
    weir_fake_allocations,         ///< of the device and managed
    weir_fake_pinned_allocations,  ///< of cuMemHostAlloc
    weir_fake_modules,
    weir_fake_contexts,
    weir_fake_address_ranges,  ///< of cuMemAddressReserve
    weir_fake_created_memory,  ///< of cuMemCreate, as long as a handle or a mapping keeps it
};
/// How many there are that were not destroyed, freed, unloaded or released.
WEIR_FAKE_EXPORT std::size_t weir_fake_live(int thing);

/// What cuMemGetInfo does not call free: allocations, and what the pool keeps.
WEIR_FAKE_EXPORT std::size_t weir_fake_bytes_in_use(int device);
/// Of each device.
WEIR_FAKE_EXPORT void weir_fake_set_total_memory(std::size_t bytes);

/// Whether launches, records and waits need the context of their stream to be current, as those of no driver that we know do.
WEIR_FAKE_EXPORT void weir_fake_ignore_handles(int whether);

/// What all devices answer for a CUdevice_attribute from now on.
WEIR_FAKE_EXPORT void weir_fake_set_attribute(int which, int value);

/// The stream begins no further entry until it is opened. 1 and 2 are the default streams of the calling thread's context.
/// Returns the stream's unique id, or 0 if there is no such stream.
WEIR_FAKE_EXPORT unsigned long long weir_fake_hold(void* stream);
/// By its id, since the handle may be another stream's by now; it does no harm if the stream is gone.
WEIR_FAKE_EXPORT void weir_fake_open(unsigned long long id);
/// All streams, also those that are made meanwhile. Opening all opens also those that were held one by one.
WEIR_FAKE_EXPORT void weir_fake_hold_all();
WEIR_FAKE_EXPORT void weir_fake_open_all();
/// Entries of the stream that are not done.
WEIR_FAKE_EXPORT std::size_t weir_fake_pending(void* stream);
/// Blocks until the stream has done all that it can without others: nothing is left, or what is next waits for a stream that is
/// not there yet. What has begun is waited for, and so is a stream that is held.
WEIR_FAKE_EXPORT void weir_fake_settle(void* stream);

/// A sticky error, as of a kernel that traps: nothing runs any more, on any device of the process.
WEIR_FAKE_EXPORT void weir_fake_break(int error);
/// Takes a sticky error away, so that a next test starts with sound devices. The real driver cannot.
WEIR_FAKE_EXPORT void weir_fake_heal();

/// Work that another library puts into a stream: `work(with)` is called by the stream's thread in its turn, and returns a
/// sticky error or 0. Not counted. For libraries that stand on the driver.
WEIR_FAKE_EXPORT int weir_fake_enqueue(void* stream, int (*work)(void*), void* with);
