// The whole interface of Weir for C++ programs. Layer: umbrella.
#pragma once

/// \mainpage Weir: the reference
/// One page for each class, and one for \ref weir "namespace weir" with the functions and the rules that apply to all of them. The
/// <a href="../index.html">guide</a> explains how the parts work together; start there with
/// <a href="../first-program/index.html">ten minutes to the first program</a>.

/// \namespace weir
/// The whole interface of Weir. Unless a declaration says otherwise,
///  - any thread may call it, several at once (rule O8); one object that is not a handle (a scope, a plan, a report) is for one
///    thread at a time, as standard containers are;
///  - a call that enqueues work returns once it is enqueued, and neither it nor a question waits for work of a device.
///    On `cpu:inline`, which has no queues, what is enqueued runs in the call (rule S8);
///  - a call that needs memory may throw std::bad_alloc and out_of_memory. A call that throws has done nothing;
///  - a call that uses a stream throws state_error if the stream is closed;
///  - in the child of a fork, the CPU continues with what the parent had, if nothing was pending at the fork and no other thread was in a
///    call of Weir; else each call that enqueues, waits or allocates throws state_error (rule L3). Devices other than the CPU stay with
///    the parent that had used them: calls that use them throw state_error, too.
///
/// A `source_location` at the end of a function's parameters is the line of the program that reports and timelines name; leave it out.
/// Rules such as O2 are those of the pages "How ordering works" and "The memory model".

#include "weir/access.hpp"
#include "weir/arithmetic.hpp"
#include "weir/array.hpp"
#include "weir/borrow.hpp"
#include "weir/buffer.hpp"
#include "weir/calls.hpp"
#include "weir/capture.hpp"
#include "weir/check.hpp"
#include "weir/completion.hpp"
#include "weir/device.hpp"
#include "weir/dlpack.hpp"
#include "weir/dtype.hpp"
#include "weir/elementwise.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/explain.hpp"
#include "weir/fft.hpp"
#include "weir/float16.hpp"
#include "weir/index_function.hpp"
#include "weir/indexing.hpp"
#include "weir/kernel.hpp"
#include "weir/kernel_argument.hpp"
#include "weir/launch.hpp"
#include "weir/linalg.hpp"
#include "weir/memory.hpp"
#include "weir/memory_resource.hpp"
#include "weir/native_queue.hpp"
#include "weir/on.hpp"
#include "weir/operands.hpp"
#include "weir/ordering.hpp"
#include "weir/package.hpp"
#include "weir/parallel.hpp"
#include "weir/pin.hpp"
#include "weir/pmr.hpp"
#include "weir/poisoning.hpp"
#include "weir/random.hpp"
#include "weir/reduction.hpp"
#include "weir/reduction_kernel.hpp"
#include "weir/scalar.hpp"
#include "weir/shape.hpp"
#include "weir/sharing.hpp"
#include "weir/sparse.hpp"
#include "weir/stats.hpp"
#include "weir/stream.hpp"
#include "weir/strided_span.hpp"
#include "weir/testing.hpp"
#include "weir/token.hpp"
#include "weir/trace.hpp"
#include "weir/wait_log.hpp"
#include "weir/watchdog.hpp"
