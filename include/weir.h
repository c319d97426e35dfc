/** \file
 * Weir for C, and for languages that call C: streams, events, memory, access scopes. C11. Layer: c_api.
 *
 * What holds for all functions:
 *  - A function that can fail returns a status: WEIR_OK, or what went wrong; weir_last_error() then has the message. It has done
 *    nothing then, unless it says otherwise, and what it was to store through a pointer is null or 0. No exception leaves it.
 *  - Handles are opaque. Each handle that a function stores is to be dropped once, by the `_drop` of its kind; null is dropped
 *    without effect. Devices are not dropped. Dropping never blocks: what is pending keeps what it needs (rules S4, L1).
 *  - Any thread may call, several at once (rule O8). One handle must not be dropped while another call uses it.
 *  - A call that enqueues returns once the work is enqueued, and waits for no work of a device. On `cpu:inline`, which has no
 *    queues, the work runs in the call (rule S8).
 *  - A null handle where one is needed is WEIR_ERROR_ARGUMENT. So is a null pointer to where a result goes.
 *  - `site` is the label of an operation and the line of the program that errors, reports and timelines name: WEIR_SITE("label"),
 *    or null. Its texts must live as long as the program, as literals do.
 *
 * Rules such as O1 are those of the pages "How ordering works" and "The memory model". The C++ interface is weir/weir.hpp. */
#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

/** Marks what the shared library exports. */
#if defined(__GNUC__)
#define WEIR_C_EXPORT __attribute__((visibility("default")))
#else
#define WEIR_C_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ---- */

/** What a function returns: one of the numbers below. */
typedef int weir_status;
/** The values of weir_status. They do not change; later versions may add some. */
enum {
    WEIR_OK = 0,             /**< nothing went wrong */
    WEIR_ERROR_ARGUMENT = 1, /**< a value that the call cannot take (argument_error, argument_type_error) */
    WEIR_ERROR_STATE = 2,    /**< the object is not in a state for this call: a closed stream (state_error) */
    WEIR_ERROR_OUT_OF_MEMORY =
        3,                    /**< no memory is left, of the device or of the host (out_of_memory, std::bad_alloc) */
    WEIR_ERROR_OPERATION = 4, /**< an operation failed while it ran (operation_error, rule K4) */
    WEIR_ERROR_DEVICE = 5,    /**< the device or its driver failed (device_error) */
    WEIR_ERROR_MISSING_LIBRARY = 6, /**< a library that is opened at run time is not there (missing_library) */
    WEIR_ERROR_RACE = 7, /**< `check` in its mode "raise" found a race (race_error); the work is enqueued, safely */
    WEIR_ERROR_OTHER = 8 /**< anything else */
};

/** The message of the last call of the calling thread that failed, in UTF-8; empty if none did. Good until the next call of this
 * thread fails. Never null, never blocks. */
WEIR_C_EXPORT const char* weir_last_error(void);
/** "WEIR_ERROR_STATE" and so on; "unknown status" for other numbers. Never null, never blocks. */
WEIR_C_EXPORT const char* weir_status_name(weir_status status);

/* ---- Handles ---- */

typedef struct weir_device weir_device; /**< a device, open for the life of the process */
typedef struct weir_stream weir_stream; /**< an in-order queue of a device */
typedef struct weir_event weir_event;   /**< a marker for a moment in a stream */
typedef struct weir_buffer weir_buffer; /**< memory that knows its pending accesses */
typedef struct weir_token weir_token;   /**< an operand without memory */
typedef struct weir_access weir_access; /**< an access scope */

/** A label and a line of the program. */
typedef struct weir_site {
    const char* label;    /**< null: none */
    const char* file;     /**< null: unknown */
    const char* function; /**< null: unknown */
    uint32_t line;        /**< 0: unknown */
} weir_site;

/** The line on which this stands, for C. `label_` is a literal, or NULL. */
#define WEIR_SITE(label_) (&(const weir_site){(label_), __FILE__, __func__, (uint32_t)__LINE__})

/* ---- Devices ---- */

/** The device of that name, opened: "cpu", "cpu:inline", "cuda:0", "sim:0". The same name gives the same handle, which is good for the
 * life of the process. Opening a CUDA device may block. Fails with WEIR_ERROR_ARGUMENT (the message lists the names that there
 * are), WEIR_ERROR_DEVICE. */
WEIR_C_EXPORT weir_status weir_device_open(const char* name, weir_device** device);
/** The device's name; null for null. Never blocks. */
WEIR_C_EXPORT const char* weir_device_name(const weir_device* device);
/** Blocks until everything that was enqueued before, on all streams of the device, is complete. Fails with WEIR_ERROR_OPERATION if any of
 * it failed and no call has reported that yet. */
WEIR_C_EXPORT weir_status weir_device_synchronize(const weir_device* device);
/** Loads the kernels that operations on arrays of these element types use, in C++ and in Python, so that the first use of each neither
 * compiles nor loads (rule K6): a driver that loads code may wait for all work of the device. `types`: `count` names, such as
 * "float32" or "unsigned short"; with none, which may be null, what a CUDA device gets when it is opened. Blocks while the compiler
 * runs, and until the device has loaded the kernels, which may wait for its work. On devices that are not CUDA's it does nothing.
 * Fails with WEIR_ERROR_ARGUMENT (a type that is not known), WEIR_ERROR_MISSING_LIBRARY (no NVRTC), WEIR_ERROR_DEVICE,
 * WEIR_ERROR_OUT_OF_MEMORY. What it loaded before it failed stays loaded. */
WEIR_C_EXPORT weir_status weir_device_prepare(const weir_device* device, const char* const* types, size_t count);

/* ---- Streams ---- */

/** Flags of weir_stream_create. */
enum {
    WEIR_STREAM_DEFAULT = 0, /**< none */
    WEIR_STREAM_BLOCKING = 1 /**< CUDA orders it with the legacy default stream, as its blocking streams (rule S6) */
};

/** A new in-order queue of the device (rule S1). `name` is for messages and timelines, and is copied; null: "stream 3". A smaller
 * `priority` is more urgent, 0 is the usual one. Does not block. Fails with WEIR_ERROR_ARGUMENT (unknown flags). */
WEIR_C_EXPORT weir_status weir_stream_create(const weir_device* device, const char* name, int priority, unsigned flags,
                                             weir_stream** stream);
/** The stream of a driver's handle, a CUstream, which is a cudaStream_t: others own it and may use it as well (rule S5). 0 and 1 are the
 * legacy default stream, 2 that of the calling thread. Dropping it never ends the queue. `release(context)`, if it is not null, is
 * called once, on a thread of Weir's, when the stream has no users and no pending work any more; without it the queue must live
 * until then. Does not block. Fails with WEIR_ERROR_ARGUMENT (no such stream, a device whose streams have no handles): then
 * `release` is not called. */
WEIR_C_EXPORT weir_status weir_stream_adopt(const weir_device* device, void* native, void (*release)(void* context),
                                            void* context, weir_stream** stream);
/** Another handle of the calling thread's current stream of the device (rule S7): its default stream, which all threads share, unless
 * code in C++ has made another one current. Never blocks. */
WEIR_C_EXPORT weir_status weir_stream_current(const weir_device* device, weir_stream** stream);
/** Gives up the handle. The stream ends once it has no handles and no pending work (rule S4). Never blocks, cancels nothing. */
WEIR_C_EXPORT void weir_stream_drop(weir_stream* stream);
/** The stream takes no more work, through any handle: WEIR_ERROR_STATE from now on. What is pending still runs. The handle stays, and is
 * to be dropped. Idempotent, never blocks. */
WEIR_C_EXPORT weir_status weir_stream_close(weir_stream* stream);
/** Blocks until everything that was enqueued before is complete (rule S3). Fails with WEIR_ERROR_OPERATION if any of it failed and no call
 * has reported that yet. */
WEIR_C_EXPORT weir_status weir_stream_synchronize(const weir_stream* stream);
/** Stores 1 if everything that was enqueued is complete, else 0. Never blocks. */
WEIR_C_EXPORT weir_status weir_stream_done(const weir_stream* stream, int* done);
/** What is enqueued on `stream` from now on starts after everything that was enqueued on `other` up to now. Device-side: does not block
 * (rules S2, S3). Fails with WEIR_ERROR_STATE (a closed stream). */
WEIR_C_EXPORT weir_status weir_stream_wait(const weir_stream* stream, const weir_stream* other, const weir_site* site);
/** Stores the driver's handle, a CUstream; null on devices whose streams have none. From now on others may put work into the queue, which
 * Weir does not see (rules O2, O9): declare that work by weir_access_begin. Blocks until what was enqueued before is in the
 * driver's queue. Fails with WEIR_ERROR_STATE (a closed stream). */
WEIR_C_EXPORT weir_status weir_stream_native(const weir_stream* stream, void** native);

/* ---- Events ---- */

/** Flags of weir_event_create. */
enum {
    WEIR_EVENT_DEFAULT = 0, /**< none */
    WEIR_EVENT_TIMING = 1   /**< records note the device's time, for weir_event_elapsed */
};

/** A marker for a moment in a stream, not recorded yet: it is done, and a wait for it is no wait (rule S2). Fails with
 * WEIR_ERROR_ARGUMENT (unknown flags). */
WEIR_C_EXPORT weir_status weir_event_create(unsigned flags, weir_event** event);
/** Gives up the handle. What waits for the event keeps waiting for the recorded moment. Never blocks. */
WEIR_C_EXPORT void weir_event_drop(weir_event* event);
/** From now on the event holds the end of what is in the stream now, whatever it held before (rule S2). Does not block. Fails with
 * WEIR_ERROR_STATE (a closed stream). */
WEIR_C_EXPORT weir_status weir_event_record(weir_event* event, const weir_stream* stream, const weir_site* site);
/** What is enqueued on the stream from now on starts after the moment that the event holds now. Device-side: does not block (rule S3). Fails
 * with WEIR_ERROR_STATE (a closed stream). */
WEIR_C_EXPORT weir_status weir_event_wait(const weir_event* event, const weir_stream* stream, const weir_site* site);
/** Blocks until the recorded moment is complete. Fails with WEIR_ERROR_OPERATION if what it stands for failed (rule K4). */
WEIR_C_EXPORT weir_status weir_event_synchronize(const weir_event* event);
/** Stores 1 if the recorded moment is complete, or nothing was recorded, else 0. Never blocks. */
WEIR_C_EXPORT weir_status weir_event_done(const weir_event* event, int* done);
/** Stores the driver's event, a CUevent, to wait for or to ask, not to record; null if nothing was recorded, or on devices without such
 * events. Good until the event is recorded again, or gone. Blocks while the work waits for another device (rule O9). */
WEIR_C_EXPORT weir_status weir_event_native(const weir_event* event, void** native);
/** Stores the milliseconds from the moment recorded in `begin` to that in `end`. Never blocks. Fails with WEIR_ERROR_STATE unless both have
 * WEIR_EVENT_TIMING, are recorded and complete, and of one device. */
WEIR_C_EXPORT weir_status weir_event_elapsed(const weir_event* begin, const weir_event* end, double* milliseconds);

/* ---- Memory ---- */

/** `bytes` of uninitialised memory of the stream's device, aligned to 256 bytes, for use on any of its streams. 0 bytes is no memory.
 * Does not block as long as memory can be had without (rule L1). Fails with WEIR_ERROR_OUT_OF_MEMORY, WEIR_ERROR_STATE. */
WEIR_C_EXPORT weir_status weir_buffer_allocate(const weir_stream* stream, size_t bytes, const weir_site* site,
                                               weir_buffer** buffer);
/** Memory that others own: `bytes` bytes of the device from its address `pointer` on, tracked as any other. `release(context)`, if it is
 * not null, is called exactly once, when the buffer is dropped and the last access made through Weir is complete (rule L4): on the
 * thread that drops if nothing is pending, else on a thread of Weir's. It must not block. Wrap the same memory once: two wraps
 * know nothing of each other. 0 bytes is no memory, and is released at once. Does not block. Fails with WEIR_ERROR_ARGUMENT (null with bytes): then `release` is not called. */
WEIR_C_EXPORT weir_status weir_buffer_wrap(const weir_device* device, void* pointer, size_t bytes,
                                           void (*release)(void* context), void* context, const weir_site* site,
                                           weir_buffer** buffer);
/** Gives up the handle. The memory is neither reused nor released before every access to it is complete, or ordered before the next one
 * (rule L1). Never blocks. */
WEIR_C_EXPORT void weir_buffer_drop(weir_buffer* buffer);
/** The device's address of the first byte, for code that runs there; null for null. Not to be used but in what is declared to Weir:
 * weir_access_begin, weir_host_task. Never blocks. */
WEIR_C_EXPORT void* weir_buffer_pointer(const weir_buffer* buffer);
/** Its size; 0 for null. Never blocks. */
WEIR_C_EXPORT size_t weir_buffer_bytes(const weir_buffer* buffer);
/** Stores 1 if nothing pending conflicts with reading it now (or, if `to_write` is not 0, with changing it), else 0. Never blocks. */
WEIR_C_EXPORT weir_status weir_buffer_ready(const weir_buffer* buffer, int to_write, int* ready);

/* ---- Tokens ---- */

/** An operand without memory, for what is not memory: a communicator, a file, a slot of a pool (rule K5). `name` is for reports, and is
 * copied; null: none. Does not block. */
WEIR_C_EXPORT weir_status weir_token_create(const char* name, weir_token** token);
/** Gives up the handle. What is pending keeps its order. Never blocks. */
WEIR_C_EXPORT void weir_token_drop(weir_token* token);

/* ---- Work ---- */

/** How an operation uses an operand. */
enum {
    WEIR_IN = 0,   /**< it is only read */
    WEIR_OUT = 1,  /**< every byte is written and none is read before */
    WEIR_INOUT = 2 /**< it is read and written */
};

/** A part of a buffer, or a token: exactly one of the two is not null. */
typedef struct weir_operand {
    const weir_buffer* buffer; /**< null: it is a token */
    const weir_token* token;   /**< null: it is a buffer */
    size_t offset;             /**< of a buffer: the first byte */
    size_t bytes;              /**< of a buffer: how many; 0: up to its end */
    int use;                   /**< WEIR_IN, WEIR_OUT or WEIR_INOUT */
} weir_operand;

/** An operand that is all of a buffer. */
static inline weir_operand weir_operand_of(const weir_buffer* buffer, int use) {
    weir_operand operand = {NULL, NULL, 0, 0, 0};
    operand.buffer = buffer;
    operand.use = use;
    return operand;
}
/** An operand that is a token. */
static inline weir_operand weir_operand_of_token(const weir_token* token, int use) {
    weir_operand operand = {NULL, NULL, 0, 0, 0};
    operand.token = token;
    operand.use = use;
    return operand;
}

/** Begins an access scope: until weir_access_end, work that others do (launches of another library, or of the program) uses these
 * operands, in the stream `stream` (rule X6). What must come before is ordered before, and what Weir enqueues elsewhere on these
 * operands, meanwhile and later, comes after.
 *
 *  - On a CUDA device the work goes into weir_access_native(). Weir has the stream wait, on the device: the call does not block
 *    the caller for that, but while it waits for another kind of device (rule O9).
 *  - On the CPU the calling thread itself does the work, between begin and end. The scope is an operation of the stream: begin
 *    blocks until the stream gets there, and the stream goes on at the end. So the thread must not wait for this stream, nor
 *    enqueue on `cpu:inline` what conflicts, before it has called weir_access_end.
 *
 * Fails with WEIR_ERROR_ARGUMENT (operands, memory that the stream's device or, without a native stream, the host cannot reach),
 * WEIR_ERROR_STATE; on the CPU WEIR_ERROR_OPERATION (an operand is not valid, since what was to write it failed: rule K4). */
WEIR_C_EXPORT weir_status weir_access_begin(const weir_stream* stream, const weir_operand* operands, size_t count,
                                            const weir_site* site, weir_access** access);
/** The driver's handle of the stream, a CUstream; null on devices whose streams have none, and for null. Never blocks. */
WEIR_C_EXPORT void* weir_access_native(const weir_access* access);
/** Where the operand of that number begins, its offset counted in: an address of the device on CUDA, of the host on the CPU. Null for a
 * token, and for a number that is too large. Never blocks. */
WEIR_C_EXPORT void* weir_access_pointer(const weir_access* access, size_t number);
/** Ends the scope: what is in the native stream now, or what the calling thread has done, is what later uses come after. The handle is
 * given up, whatever is returned. Does not block. Null is WEIR_OK. If it fails (no memory, the driver), the operands are kept for
 * ever rather than handed on too early. */
WEIR_C_EXPORT weir_status weir_access_end(weir_access* access);

/** The function of a host task. `pointers` has the host's address of each operand, its offset counted in, and null for a token. Any
 * value but 0 fails the operation (rule K4): what it was to write is not valid. It may block and may enqueue work; it must not
 * wait for its own stream, and no exception may leave it. */
typedef int (*weir_host_function)(void* context, void* const* pointers);
/** Enqueues `function(context, pointers)` as an operation of the stream, on a thread of its own. Memory that the host cannot reach faults
 * when it is touched. `release(context)`, if it is not null, is called once, when the operation is complete, also if it did not run.
 * Returns once enqueued. Fails with WEIR_ERROR_ARGUMENT, WEIR_ERROR_STATE: then nothing is called. */
WEIR_C_EXPORT weir_status weir_host_task(const weir_stream* stream, const weir_operand* operands, size_t count,
                                         weir_host_function function, void* context, void (*release)(void* context),
                                         const weir_site* site);
/** Enqueues a copy of `bytes` bytes between two buffers, which may be one, and of two devices: the stream is of one of them. Where the two
 * ranges overlap, as if the source had been copied first. Fails with WEIR_ERROR_ARGUMENT (a range outside of its buffer). */
WEIR_C_EXPORT weir_status weir_copy(const weir_stream* stream, weir_buffer* to, size_t to_offset,
                                    const weir_buffer* from, size_t from_offset, size_t bytes, const weir_site* site);
/** Enqueues a copy from host memory, which is taken as it is at the call and may be changed at once. The stream is of the buffer's device
 * or of the CPU. Fails as weir_copy does. */
WEIR_C_EXPORT weir_status weir_write(const weir_stream* stream, weir_buffer* to, size_t offset, const void* from,
                                     size_t bytes, const weir_site* site);
/** Copies to host memory. Blocks until exactly what conflicts with reading these bytes is complete (rule O6). Fails with WEIR_ERROR_OPERATION
 * if what was to write them failed (rule K4), WEIR_ERROR_ARGUMENT as weir_copy. */
WEIR_C_EXPORT weir_status weir_read(const weir_buffer* from, size_t offset, void* to, size_t bytes,
                                    const weir_site* site);

#ifdef __cplusplus
}
#endif

#endif /**< WEIR_H */
