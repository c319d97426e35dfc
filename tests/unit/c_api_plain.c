/* Programs in plain C, as c_api_test.cpp runs them. C11, without warnings. */
#include "c_api_plain.h"

#include <string.h>

#define WANT(condition)      \
    do {                     \
        if (!(condition)) {  \
            return __LINE__; \
        }                    \
    } while (0)
#define WANT_OK(call) WANT((call) == WEIR_OK)

enum { n = 64 };

/* Two streams of the device, and a buffer. */
typedef struct world {
    weir_device* device;
    weir_stream* a;
    weir_stream* b;
    weir_buffer* x;
} world;

static int make_world(world* w, const char* device) {
    memset(w, 0, sizeof *w);
    WANT_OK(weir_device_open(device, &w->device));
    WANT_OK(weir_stream_create(w->device, "a", 0, WEIR_STREAM_DEFAULT, &w->a));
    WANT_OK(weir_stream_create(w->device, "b", 0, WEIR_STREAM_DEFAULT, &w->b));
    WANT_OK(weir_buffer_allocate(w->a, n, WEIR_SITE(NULL), &w->x));
    return 0;
}
static void end_world(world* w) {
    weir_buffer_drop(w->x);
    weir_stream_drop(w->b);
    weir_stream_drop(w->a);
}

static int written(const world* w, weir_stream* on, unsigned char value, const char* label) {
    unsigned char bytes[n];
    memset(bytes, value, sizeof bytes);
    weir_site site = *WEIR_SITE(NULL);
    site.label = label;
    return weir_write(on, w->x, 0, bytes, sizeof bytes, &site);
}

int c_two_streams_share_a_buffer(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    weir_buffer* y = NULL;
    WANT_OK(weir_buffer_allocate(w.b, n, NULL, &y));
    WANT(weir_buffer_bytes(y) == n && weir_buffer_pointer(y) != NULL);
    int ready = 1;
    gate->hold(gate->self, w.a);
    WANT_OK(written(&w, w.a, 7, "fill"));
    WANT_OK(weir_copy(w.b, y, 8, w.x, 0, n - 8, WEIR_SITE("copy")));
    WANT_OK(weir_buffer_ready(y, 0, &ready));
    WANT(ready == 0);
    gate->open(gate->self);
    unsigned char seen = 0;
    WANT_OK(weir_read(y, n - 1, &seen, 1, WEIR_SITE(NULL)));
    WANT(seen == 7);
    WANT_OK(weir_buffer_ready(y, 0, &ready));
    WANT(ready == 1);
    weir_buffer_drop(y);
    end_world(&w);
    return 0;
}

int c_events_order_two_streams(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    weir_event* e = NULL;
    int done = 0;
    WANT_OK(weir_event_create(WEIR_EVENT_DEFAULT, &e));
    WANT_OK(weir_event_done(e, &done));
    WANT(done == 1); /* not recorded yet */
    gate->hold(gate->self, w.a);
    WANT_OK(written(&w, w.a, 1, "first"));
    WANT_OK(weir_event_record(e, w.a, WEIR_SITE(NULL)));
    WANT_OK(weir_event_wait(e, w.b, WEIR_SITE(NULL)));
    WANT_OK(weir_event_done(e, &done));
    WANT(done == 0);
    WANT_OK(weir_stream_done(w.b, &done));
    WANT(done == 0);
    gate->open(gate->self);
    WANT_OK(weir_event_synchronize(e));
    WANT_OK(weir_stream_synchronize(w.b));
    WANT_OK(weir_stream_done(w.b, &done));
    WANT(done == 1);

    weir_event* begin = NULL;
    weir_event* end = NULL;
    double milliseconds = -1;
    WANT_OK(weir_event_create(WEIR_EVENT_TIMING, &begin));
    WANT_OK(weir_event_create(WEIR_EVENT_TIMING, &end));
    WANT_OK(weir_event_record(begin, w.a, NULL));
    WANT_OK(written(&w, w.a, 2, "second"));
    WANT_OK(weir_event_record(end, w.a, NULL));
    WANT_OK(weir_device_synchronize(w.device));
    WANT_OK(weir_event_elapsed(begin, end, &milliseconds));
    WANT(milliseconds >= 0);
    WANT(weir_event_elapsed(begin, e, &milliseconds) == WEIR_ERROR_STATE);
    weir_event_drop(end);
    weir_event_drop(begin);
    weir_event_drop(e);
    end_world(&w);
    return 0;
}

/* Adds one to each byte. */
static int increment(void* context, void* const* pointers) {
    unsigned char* bytes = pointers[0];
    for (int i = 0; i < n; ++i) {
        ++bytes[i];
    }
    ++*(int*)context;
    return 0;
}

int c_a_scope_on_the_host(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    int calls = 0;
    int ready = 1;
    const weir_operand whole = weir_operand_of(w.x, WEIR_INOUT);
    (void)gate;
    WANT_OK(written(&w, w.a, 1, "fill"));
    weir_access* scope = NULL;
    WANT_OK(weir_access_begin(w.b, &whole, 1, WEIR_SITE("by hand"), &scope));
    WANT(weir_access_native(scope) == NULL);
    unsigned char* bytes = weir_access_pointer(scope, 0);
    WANT(bytes != NULL && bytes[0] == 1); /* after the write on the other stream */
    WANT(weir_access_pointer(scope, 1) == NULL);
    WANT_OK(weir_host_task(w.a, &whole, 1, increment, &calls, NULL, WEIR_SITE("increment")));
    WANT_OK(weir_buffer_ready(w.x, 0, &ready));
    WANT(ready == 0);
    memset(bytes, 40, n); /* before the task, whatever its thread does */
    WANT_OK(weir_access_end(scope));
    unsigned char seen[n];
    WANT_OK(weir_read(w.x, 0, seen, n, NULL));
    WANT(seen[0] == 41 && seen[n - 1] == 41 && calls == 1);
    WANT_OK(weir_access_end(NULL));
    end_world(&w);
    return 0;
}

static void count_release(void* context) { ++*(int*)context; }

static int copy_first(void* context, void* const* pointers) {
    memcpy(context, pointers[0], 1);
    return 0;
}

int c_wrapped_memory_is_released_once_after_its_use(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    static unsigned char own[n];
    memset(own, 9, n);
    int released = 0;
    unsigned char seen = 0;
    weir_buffer* wrapped = NULL;
    WANT_OK(weir_buffer_wrap(w.device, own, n, count_release, &released, WEIR_SITE(NULL), &wrapped));
    WANT(weir_buffer_pointer(wrapped) == own);
    weir_operand part = weir_operand_of(wrapped, WEIR_IN);
    part.offset = n - 1;
    gate->hold(gate->self, w.a);
    WANT_OK(weir_host_task(w.a, &part, 1, copy_first, &seen, NULL, WEIR_SITE("copy first")));
    weir_buffer_drop(wrapped);
    WANT(released == 0 && seen == 0);
    gate->open(gate->self);
    WANT_OK(weir_stream_synchronize(w.a));
    WANT(seen == 9);
    /* Nothing is pending: the release is on this thread. */
    int other = 0;
    WANT_OK(weir_buffer_wrap(w.device, own, n, count_release, &other, NULL, &wrapped));
    weir_buffer_drop(wrapped);
    WANT(other == 1);
    end_world(&w);
    return 0;
}

static int note(void* context, void* const* pointers) {
    char** const next = context;
    (void)pointers;
    *(*next)++ = pointers[0] == NULL ? 't' : 'm'; /* a token has no memory */
    return 0;
}
static int note_other(void* context, void* const* pointers) {
    char** const next = context;
    (void)pointers;
    *(*next)++ = 'o';
    return 0;
}

int c_a_token_orders_host_tasks(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    char order[4] = "";
    char* next = order;
    int done = 1;
    weir_token* slot = NULL;
    WANT_OK(weir_token_create("slot", &slot));
    const weir_operand use = weir_operand_of_token(slot, WEIR_INOUT);
    gate->hold(gate->self, w.a);
    WANT_OK(weir_host_task(w.a, &use, 1, note, &next, NULL, WEIR_SITE("first")));
    WANT_OK(weir_host_task(w.b, &use, 1, note_other, &next, NULL, WEIR_SITE("second")));
    weir_token_drop(slot);
    WANT_OK(weir_stream_done(w.b, &done));
    WANT(done == 0);
    gate->open(gate->self);
    WANT_OK(weir_stream_synchronize(w.b));
    WANT(strcmp(order, "to") == 0);
    end_world(&w);
    return 0;
}

static int refuse(void* context, void* const* pointers) {
    (void)context;
    (void)pointers;
    return 3;
}

int c_failures_are_told(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    (void)gate;
    int released = 0;
    unsigned char byte = 0;
    weir_access* scope = NULL;
    const weir_operand all = weir_operand_of(w.x, WEIR_OUT);
    const weir_operand change = weir_operand_of(w.x, WEIR_INOUT);
    WANT_OK(weir_host_task(w.a, &all, 1, refuse, &released, count_release, WEIR_SITE("refuse")));
    WANT(weir_stream_synchronize(w.a) == WEIR_ERROR_OPERATION);
    WANT(strstr(weir_last_error(), "refuse") != NULL);
    WANT(strstr(weir_last_error(), "returned 3") != NULL);
    WANT(strstr(weir_last_error(), "c_api_plain.c") != NULL);
    WANT(weir_read(w.x, 0, &byte, 1, NULL) == WEIR_ERROR_OPERATION);
    WANT(weir_access_begin(w.b, &change, 1, WEIR_SITE("never begins"), &scope) == WEIR_ERROR_OPERATION);
    WANT(scope == NULL);
    /* Without a place, the message has none. */
    WANT_OK(weir_host_task(w.a, &all, 1, refuse, NULL, NULL, NULL));
    WANT(weir_stream_synchronize(w.a) == WEIR_ERROR_OPERATION);
    WANT(strstr(weir_last_error(), "\"operation\"") != NULL);
    WANT(strstr(weir_last_error(), "enqueued at") == NULL);
    /* Written anew, it is valid. */
    WANT_OK(written(&w, w.b, 5, "anew"));
    WANT_OK(weir_read(w.x, 0, &byte, 1, NULL));
    WANT(byte == 5);
    end_world(&w);
    return 0;
}

int c_what_is_refused(const char* device, const test_gate* gate) {
    world w;
    const int wrong = make_world(&w, device);
    WANT(wrong == 0);
    (void)gate;
    weir_device* no_device = w.device;
    WANT(weir_device_open("gpu:0", &no_device) == WEIR_ERROR_ARGUMENT);
    WANT(no_device == NULL && strstr(weir_last_error(), "gpu:0") != NULL);
    WANT(weir_device_open(NULL, &no_device) == WEIR_ERROR_ARGUMENT);
    WANT(weir_device_open(device, NULL) == WEIR_ERROR_ARGUMENT);
    WANT(strstr(weir_last_error(), "weir_device_open got null for `device`") != NULL);
    weir_device* same = NULL;
    WANT_OK(weir_device_open(device, &same));
    WANT(same == w.device && strcmp(weir_device_name(same), device) == 0);
    WANT(weir_device_name(NULL) == NULL);

    const char* const types[] = {"float32", "float8", NULL};
    WANT_OK(weir_device_prepare(w.device, types, 1));
    WANT_OK(weir_device_prepare(w.device, NULL, 0));
    WANT(weir_device_prepare(NULL, types, 1) == WEIR_ERROR_ARGUMENT);
    WANT(weir_device_prepare(w.device, NULL, 1) == WEIR_ERROR_ARGUMENT);
    WANT(strstr(weir_last_error(), "weir_device_prepare got null for `types`") != NULL);
    WANT(weir_device_prepare(w.device, types, 2) == WEIR_ERROR_ARGUMENT);
    WANT(strstr(weir_last_error(), "the type \"float8\", which is not known") != NULL);
    WANT(weir_device_prepare(w.device, types + 2, 1) == WEIR_ERROR_ARGUMENT);

    weir_stream* s = w.a;
    WANT(weir_stream_create(NULL, NULL, 0, 0, &s) == WEIR_ERROR_ARGUMENT && s == NULL);
    WANT(weir_stream_create(w.device, NULL, 0, 64, &s) == WEIR_ERROR_ARGUMENT);
    WANT(weir_stream_adopt(w.device, &w, NULL, NULL, &s) == WEIR_ERROR_ARGUMENT);
    WANT(weir_stream_wait(w.a, NULL, NULL) == WEIR_ERROR_ARGUMENT);
    int done = 1;
    WANT(weir_stream_done(NULL, &done) == WEIR_ERROR_ARGUMENT && done == 0);

    unsigned char bytes[n] = {0};
    weir_buffer* b = w.x;
    WANT(weir_write(w.a, w.x, 1, bytes, n, NULL) == WEIR_ERROR_ARGUMENT);
    WANT(strstr(weir_last_error(), "64 bytes from 1 on, and its buffer has 64") != NULL);
    WANT(weir_write(w.a, w.x, 0, NULL, n, NULL) == WEIR_ERROR_ARGUMENT);
    WANT_OK(weir_write(w.a, w.x, n, NULL, 0, NULL));
    WANT(weir_read(w.x, (size_t)-1, bytes, 2, NULL) == WEIR_ERROR_ARGUMENT);
    WANT(weir_buffer_wrap(w.device, NULL, n, NULL, NULL, NULL, &b) == WEIR_ERROR_ARGUMENT && b == NULL);
    WANT(weir_buffer_bytes(NULL) == 0 && weir_buffer_pointer(NULL) == NULL);

    weir_access* scope = NULL;
    weir_operand wrong_operand = weir_operand_of(w.x, 17);
    WANT(weir_access_begin(w.a, &wrong_operand, 1, NULL, &scope) == WEIR_ERROR_ARGUMENT);
    WANT(strstr(weir_last_error(), "operand 0 has the use 17") != NULL);
    wrong_operand = weir_operand_of(NULL, WEIR_IN);
    WANT(weir_access_begin(w.a, &wrong_operand, 1, NULL, &scope) == WEIR_ERROR_ARGUMENT);
    WANT(weir_access_begin(w.a, NULL, 1, NULL, &scope) == WEIR_ERROR_ARGUMENT);
    WANT(weir_host_task(w.a, NULL, 0, NULL, NULL, NULL, NULL) == WEIR_ERROR_ARGUMENT);
    WANT(weir_access_native(NULL) == NULL && weir_access_pointer(NULL, 0) == NULL);

    int released = 0;
    WANT_OK(weir_stream_close(w.b));
    WANT_OK(weir_stream_close(w.b));
    WANT(weir_write(w.b, w.x, 0, bytes, n, NULL) == WEIR_ERROR_STATE);
    WANT(weir_host_task(w.b, NULL, 0, refuse, &released, count_release, NULL) == WEIR_ERROR_STATE && released == 0);
    WANT_OK(weir_stream_synchronize(w.b));
    WANT(strcmp(weir_status_name(WEIR_ERROR_STATE), "WEIR_ERROR_STATE") == 0);
    WANT(strcmp(weir_status_name(-1), "unknown status") == 0);
    weir_stream_drop(NULL);
    weir_event_drop(NULL);
    weir_buffer_drop(NULL);
    weir_token_drop(NULL);
    end_world(&w);
    return 0;
}
