/* The parts of c_api_test.cpp that are plain C. */
#ifndef WEIR_C_API_PLAIN_H
#define WEIR_C_API_PLAIN_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the C++ side of the tests does for the C side. */
typedef struct test_gate {
    void (*hold)(void* self, weir_stream* stream); /* what is enqueued from now on does not start before `open` */
    void (*open)(void* self);
    void* self;
} test_gate;

/* Each returns 0, or the line of the first thing that was wrong; the message is in weir_last_error() if a call failed. */
int c_two_streams_share_a_buffer(const char* device, const test_gate* gate);
int c_events_order_two_streams(const char* device, const test_gate* gate);
int c_a_scope_on_the_host(const char* device, const test_gate* gate);
int c_wrapped_memory_is_released_once_after_its_use(const char* device, const test_gate* gate);
int c_a_token_orders_host_tasks(const char* device, const test_gate* gate);
int c_failures_are_told(const char* device, const test_gate* gate);
int c_what_is_refused(const char* device, const test_gate* gate);

#ifdef __cplusplus
}
#endif

#endif
