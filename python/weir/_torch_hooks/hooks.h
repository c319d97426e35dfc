/* Between the extension module and the hooks in torch (hooks.cpp), which are compiled against the headers of the torch that is
 * installed: so nothing but C goes from one to the other. */
#ifndef WEIR_TORCH_HOOKS_H
#define WEIR_TORCH_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that an operator reads or writes: `run` bytes at each index of `dimensions` dimensions, from byte `offset` of its storage on. */
typedef struct weir_torch_access {
    uint64_t storage; /* the address where the storage begins; also an address within one, if `is_within` */
    uint64_t bytes;   /* its size */
    uint64_t offset;
    int64_t run;
    const int64_t* sizes;
    const int64_t* strides; /* in bytes */
    int32_t dimensions;
    int32_t writes;
    int32_t may_not_happen; /* whether it depends on values that the operator may leave the memory alone */
    int32_t is_within;      /* the array is another package's, and its memory may be part of a storage of torch */
} weir_torch_access;

/* A stream: the index of its device, and the driver's handle. */
typedef struct weir_torch_stream {
    int32_t device;
    uint64_t handle;
    int32_t may_end; /* not one of torch's own, which live as long as the process */
} weir_torch_stream;

/* A line of the program, with its stack: line 0 if it is not known. The texts live for ever. */
typedef struct weir_torch_place {
    const char* file;
    const char* function;
    uint32_t line;
} weir_torch_place;

/* What the hooks call. Names live for ever; the rest is valid during the call. Any thread; none of these throws. */
typedef struct weir_torch_calls {
    weir_torch_place (*place)(void); /* where the calling thread is; it takes the GIL, so under no lock */
    void (*operation)(const char* name, weir_torch_stream on, const weir_torch_access* accesses, size_t count,
                      weir_torch_place where);
    void (*host_access)(const weir_torch_access* access, weir_torch_place where);
    void (*allocated)(uint64_t address, weir_torch_stream on, weir_torch_place where);
    void (*freed)(uint64_t address);
    void (*kept_until)(uint64_t storage, weir_torch_stream on); /* Tensor.record_stream */
    void (*event_recorded)(uint64_t event, weir_torch_stream on, weir_torch_place where);
    void (*event_gone)(uint64_t event);
    void (*stream_waits)(uint64_t event, weir_torch_stream on, weir_torch_place where);
    void (*event_synchronized)(uint64_t event, weir_torch_place where);
    void (*stream_synchronized)(weir_torch_stream on, weir_torch_place where);
    void (*device_synchronized)(int32_t device, weir_torch_place where);
    void (*unseen)(const char* what); /* what the hooks cannot see, in words */
} weir_torch_calls;

/* What the hooks call while the program is kept in order. As above. */
typedef struct weir_torch_ordering {
    uint64_t (*begins)(weir_torch_stream on, const weir_torch_access* accesses,
                       size_t count); /* the operator's number; 0 if it failed */
    void (*ends)(weir_torch_stream on, uint64_t number, const weir_torch_access* results, size_t count);
    void (*leaves)(weir_torch_stream on); /* the thread goes on with another stream */
    void (*host_needs)(const weir_torch_access* access);
    void (*allocated)(uint64_t address, weir_torch_stream on);
    void (*freed)(uint64_t address);
    void (*event_recorded)(uint64_t event, weir_torch_stream on);
    void (*event_gone)(uint64_t event);
    void (*stream_waits)(uint64_t event, weir_torch_stream on);
    void (*event_synchronized)(uint64_t event);
    void (*stream_synchronized)(weir_torch_stream on);
    void (*device_synchronized)(int32_t device);
    void (*unseen)(const char* what);
} weir_torch_ordering;

/* torch's events, for waits of our own, which are not reported. Each returns 0, or another number if it fails. */
typedef struct weir_torch_events {
    int (*record)(weir_torch_stream on, void** event); /* makes one if *event is null */
    int (*wait)(weir_torch_stream on, void* event);
    int (*synchronize)(void* event);
    int (*is_complete)(void* event, int* answer);
    void (*destroy)(void* event);
    int (*synchronize_device)(int32_t device);
} weir_torch_events;

/* Defined by the hooks.
 * weir_torch_install: to be called once, first; false if another tool has torch's hooks of streams and events.
 * weir_torch_watch, weir_torch_order: begin and end; hooks that run in other threads may call for a moment still.
 * weir_torch_thread:  the calling thread takes part from now on, or no longer; once for each context.
 * weir_torch_keeps_order: whether the calling thread takes part while the program is kept in order, and no graph is captured, neither
 *                     from `on`, a stream of any package, nor from torch's current stream of its device. Says whether `on` may end.
 *                     Null: the host.
 * weir_torch_event_done, weir_torch_stream_done: the thread has asked, and the answer was "done". */
int weir_torch_install(const weir_torch_calls* calls, const weir_torch_ordering* ordering);
const weir_torch_events* weir_torch_own_events(void);
void weir_torch_watch(int on);
void weir_torch_order(int on);
void weir_torch_thread(int on);
int weir_torch_keeps_order(weir_torch_stream* on);
void weir_torch_event_done(uint64_t event);
void weir_torch_stream_done(int32_t device, uint64_t stream);

/* An array that a kernel of another package gets: a tensor of torch, by its c10::TensorImpl, or memory of a device. */
typedef struct weir_torch_operand {
    void* tensor;
    int32_t device;           /* without a tensor */
    weir_torch_access access; /* of a tensor: whether it is written, and whether that is certain */
} weir_torch_operand;

/* Kernels that another package launches, such as Triton's. weir_torch_launch: before one is put into a stream; returns what
 * weir_torch_launched takes, or null if the thread does not take part. `on` null: torch's current streams; else `number` is torch's number
 * of that stream. The name lives for ever.
 * weir_torch_launched: behind it, on the same thread; `results`: what it did to memory that it allocated. `failed`: nothing was put there. */
void* weir_torch_launch(const char* name, const weir_torch_stream* on, int64_t number,
                        const weir_torch_operand* operands, size_t count);
void weir_torch_launched(void* launch, const weir_torch_operand* results, size_t count, int failed);

/* For tests without a GPU. weir_torch_pretend: tensors of the CPU count as memory of device 0, and operators on them run on this stream
 * of it; not if it is less than 0.
 * weir_torch_report: as if torch reported this; also of events and waits of other packages. */
enum weir_torch_kind {
    WEIR_TORCH_ALLOCATED, /* address; on the stream that weir_torch_pretend names */
    WEIR_TORCH_KEPT,      /* address, stream: what the operator record_stream does */
    WEIR_TORCH_FREED,     /* address */
    WEIR_TORCH_RECORDED,  /* event, stream */
    WEIR_TORCH_WAITS,     /* event, stream */
    WEIR_TORCH_EVENT_GONE,
    WEIR_TORCH_EVENT_SYNCHRONIZED,
    WEIR_TORCH_STREAM_SYNCHRONIZED,
    WEIR_TORCH_DEVICE_SYNCHRONIZED
};
void weir_torch_pretend(int64_t stream);
void weir_torch_fail(int fails);        /* whether events of our own fail from now on */
uint64_t weir_torch_device_waits(void); /* how often the host waited for the device, since events failed */
void weir_torch_report(int32_t kind, uint64_t what, uint64_t stream);

#ifdef __cplusplus
}
#endif

#endif
