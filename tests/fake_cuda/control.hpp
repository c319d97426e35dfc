// The controls and queries of the fake driver for tests. tests/support/fake_cuda.hpp has a class over these.
#pragma once

#include <cstddef>

#include "cuda.hpp"

/// How often a function of the driver was called by its name, or all of them if it is null.
WEIR_FAKE_EXPORT unsigned long long weir_fake_calls(const char* name);
/// How often the calling thread called it, or all of them if it is null: calls of Weir's own threads do not count.
WEIR_FAKE_EXPORT unsigned long long weir_fake_own_calls(const char* name);
/// The name of a function that was called, by index in alphabetical order; null if there are no more.
WEIR_FAKE_EXPORT const char* weir_fake_called(std::size_t index);
/// Resets all counts, and those of the calling thread.
WEIR_FAKE_EXPORT void weir_fake_forget_calls();

/// The nth call from now (1: the next) of the function, or of any if the name is null, returns the error and does nothing
/// else; with `for_good`, so do all later calls. "Any" leaves out calls that do not fail in practice: the current context,
/// the capture mode, versions and texts.
WEIR_FAKE_EXPORT void weir_fake_fail(const char* name, unsigned long long nth, int error, int for_good);
/// The calling thread's next call of the function returns the error and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_fail_own(const char* name, int error);
/// At the nth call from now of the function a sticky error occurs, as if a kernel trapped at that moment; the call returns it.
WEIR_FAKE_EXPORT void weir_fake_break_at(const char* name, unsigned long long nth, int error);
WEIR_FAKE_EXPORT void weir_fake_fail_no_more();

/// The calling thread's next call of the function waits before it does anything.
WEIR_FAKE_EXPORT void weir_fake_stop(const char* name);
/// The next call of the function by any thread waits. Threads that call it meanwhile wait as well.
WEIR_FAKE_EXPORT void weir_fake_stop_any(const char* name);
/// The stopped call goes on, up to its next call of the function `next` (null: for good).
WEIR_FAKE_EXPORT void weir_fake_go_on(const char* next);
/// Whether a call waits.
WEIR_FAKE_EXPORT int weir_fake_is_stopped();

enum weir_fake_thing {
    weir_fake_streams,
    weir_fake_events,
    weir_fake_allocations,         ///< of the device and managed
    weir_fake_pinned_allocations,  ///< of cuMemHostAlloc
    weir_fake_modules,
    weir_fake_contexts,
    weir_fake_address_ranges,          ///< of cuMemAddressReserve
    weir_fake_created_memory,          ///< of cuMemCreate, as long as a handle or a mapping keeps it
    weir_fake_streams_with_destroyed,  ///< also destroyed ones whose thread still runs; without default streams of contexts
};
/// How many exist: created and not destroyed, freed, unloaded or released.
WEIR_FAKE_EXPORT std::size_t weir_fake_live(int thing);

/// The bytes that cuMemGetInfo does not count as free: allocations, and what the pool keeps.
WEIR_FAKE_EXPORT std::size_t weir_fake_bytes_in_use(int device);
/// The total memory of each device.
WEIR_FAKE_EXPORT void weir_fake_set_total_memory(std::size_t bytes);

/// Whether launches, records and waits require that the context of their stream is current, as no driver known to us does.
WEIR_FAKE_EXPORT void weir_fake_ignore_handles(int whether);

/// Whether loading a module waits for everything that was enqueued in its context, as it may with a real driver.
WEIR_FAKE_EXPORT void weir_fake_loading_waits(int whether);
/// How many threads wait in such a call.
WEIR_FAKE_EXPORT std::size_t weir_fake_waiting_loads();

/// The blocks along each axis of a cluster (0: none was asked for), and 1 if it was cooperative, of the last launch with attributes.
WEIR_FAKE_EXPORT void weir_fake_last_special_launch(unsigned* four);

/// What all devices answer for a CUdevice_attribute from now on.
WEIR_FAKE_EXPORT void weir_fake_set_attribute(int which, int value);

/// The stream begins no further entry until it is opened. 1 and 2 are the default streams of the calling thread's context.
/// Returns the stream's unique id, or 0 if there is no such stream.
WEIR_FAKE_EXPORT unsigned long long weir_fake_hold(void* stream);
/// Opens the stream with this id: its handle may be another stream's by now. Without effect if the stream is gone.
WEIR_FAKE_EXPORT void weir_fake_open(unsigned long long id);
/// Holds all streams, also those that are made meanwhile. Opening all also opens those that were held one by one.
WEIR_FAKE_EXPORT void weir_fake_hold_all();
WEIR_FAKE_EXPORT void weir_fake_open_all();
/// Entries of the stream that are not done.
WEIR_FAKE_EXPORT std::size_t weir_fake_pending(void* stream);
/// Blocks until the stream has done everything that it can without other streams: nothing is left, or the next entry waits for a stream
/// that has not reached that point. Waits for the entry that runs, and for a held stream.
WEIR_FAKE_EXPORT void weir_fake_settle(void* stream);

/// Causes a sticky error, as of a kernel that traps: nothing runs any more, on any device of the process.
WEIR_FAKE_EXPORT void weir_fake_break(int error);
/// Removes a sticky error, so that the next test starts with working devices. The real driver cannot do this.
WEIR_FAKE_EXPORT void weir_fake_heal();

/// Work that another library puts into a stream: the stream's thread calls `work(with)` in its turn, which returns a
/// sticky error or 0. Not counted. For libraries that are built on the driver.
WEIR_FAKE_EXPORT int weir_fake_enqueue(void* stream, int (*work)(void*), void* with);
