/* Weir from plain C: memory of the program's own, two streams, a host task, an access scope. Exits with 0 if the sum is right.
 *
 * cc -std=c11 plain_c.c -lweir */
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

enum { count = 1000 };

/* Ends the program if a call failed. The message says what to do. */
static void check(weir_status status, int line) {
    if (status != WEIR_OK) {
        fprintf(stderr, "plain_c.c:%d: %s: %s\n", line, weir_status_name(status), weir_last_error());
        exit(1);
    }
}
#define CHECK(call) check((call), __LINE__)

/* An operation: squares the numbers of its first operand into its second. */
static int square(void* context, void* const* pointers) {
    const float* from = pointers[0];
    float* to = pointers[1];
    (void)context;
    for (int i = 0; i < count; ++i) {
        to[i] = from[i] * from[i];
    }
    return 0; /* anything else fails the operation */
}

int main(void) {
    weir_device* cpu = NULL;
    weir_stream* load = NULL;
    weir_stream* compute = NULL;
    CHECK(weir_device_open("cpu", &cpu));
    const char* const types[] = {"float32"};
    CHECK(weir_device_prepare(cpu, types, 1)); /* for arrays of C++ and Python; on the CPU there is nothing to load */
    CHECK(weir_stream_create(cpu, "load", 0, WEIR_STREAM_DEFAULT, &load));
    CHECK(weir_stream_create(cpu, "compute", 0, WEIR_STREAM_DEFAULT, &compute));

    /* x is the program's: free() is called once nothing uses it any more. y is from Weir's pool. */
    float* own = malloc(count * sizeof *own);
    weir_buffer* x = NULL;
    weir_buffer* y = NULL;
    CHECK(weir_buffer_wrap(cpu, own, count * sizeof *own, free, own, WEIR_SITE(NULL), &x));
    CHECK(weir_buffer_allocate(compute, count * sizeof(float), WEIR_SITE(NULL), &y));

    /* An access scope: between begin and end, this thread does the work, as an operation of the stream `load`. */
    const weir_operand all_of_x = weir_operand_of(x, WEIR_OUT);
    weir_access* scope = NULL;
    CHECK(weir_access_begin(load, &all_of_x, 1, WEIR_SITE("load"), &scope));
    float* elements = weir_access_pointer(scope, 0);
    for (int i = 0; i < count; ++i) {
        elements[i] = 3;
    }
    CHECK(weir_access_end(scope));

    /* On another stream: Weir adds the wait, since the task reads what the scope wrote. */
    const weir_operand operands[] = {weir_operand_of(x, WEIR_IN), weir_operand_of(y, WEIR_OUT)};
    CHECK(weir_host_task(compute, operands, 2, square, NULL, NULL, WEIR_SITE("square")));
    weir_buffer_drop(x); /* while it is in use: nothing waits, and it is not freed too early */

    float result[count];
    CHECK(weir_read(y, 0, result, sizeof result, WEIR_SITE(NULL))); /* waits for exactly what wrote y */
    float sum = 0;
    for (int i = 0; i < count; ++i) {
        sum += result[i];
    }
    printf("sum %.0f\n", (double)sum);

    /* A call that fails says why. */
    if (weir_read(y, 0, result, sizeof result + 1, WEIR_SITE(NULL)) != WEIR_ERROR_ARGUMENT) {
        return 1;
    }
    puts(weir_last_error()); /* weir_read: the range has 4001 bytes from 0 on, and its buffer has 4000 */

    weir_buffer_drop(y);
    weir_stream_drop(compute);
    weir_stream_drop(load);
    return sum == 9000 ? 0 : 1;
}
