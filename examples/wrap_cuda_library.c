/* An existing CUDA library, cuFFT, whose launches are wrapped once, in plain C: from then on they are ordered with all other work,
 * on whatever streams. Exits with 0 if the transforms are right, or if there is no CUDA device or no cuFFT.
 *
 * The library is opened at run time, so that this compiles without the CUDA toolkit. With it, include <cufft.h> instead. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

enum { count = 256, forward = -1, complex_to_complex = 0x29, buffers = 4 };

typedef struct number {
    float real, imaginary;
} number;

static void check(weir_status status, int line) {
    if (status != WEIR_OK) {
        fprintf(stderr, "wrap_cuda_library.c:%d: %s: %s\n", line, weir_status_name(status), weir_last_error());
        exit(1);
    }
}
#define CHECK(call) check((call), __LINE__)

/* ---- The library as it is: every function takes the stream that it was told, and knows nothing of Weir. ---- */

static struct {
    int (*create)(int* plan);
    int (*destroy)(int plan);
    int (*set_auto_allocation)(int plan, int on);
    int (*make_plan_many)(int plan, int rank, long long* n, long long* in_embed, long long in_stride,
                          long long in_distance, long long* out_embed, long long out_stride, long long out_distance,
                          int type, long long batch, size_t* workspace);
    int (*set_stream)(int plan, void* stream);
    int (*set_work_area)(int plan, void* memory);
    int (*execute)(int plan, void* in, void* out, int direction);
} cufft;

/* POSIX lets what dlsym returns be copied into a pointer to a function. */
static int found(void* library, const char* name, void* function) {
    void* const symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void* opened(const char* variable, const char* const* files) {
    const char* const named = getenv(variable);
    void* library = named != NULL ? dlopen(named, RTLD_NOW) : NULL;
    for (; library == NULL && *files != NULL; ++files) {
        library = dlopen(*files, RTLD_NOW);
    }
    return library;
}

static int has_cufft(void) {
    static const char* const files[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10", NULL};
    void* const library = opened("WEIR_CUFFT_LIBRARY", files);
    return library != NULL && found(library, "cufftCreate", &cufft.create) &&
           found(library, "cufftDestroy", &cufft.destroy) &&
           found(library, "cufftSetAutoAllocation", &cufft.set_auto_allocation) &&
           found(library, "cufftMakePlanMany64", &cufft.make_plan_many) &&
           found(library, "cufftSetStream", &cufft.set_stream) &&
           found(library, "cufftSetWorkArea", &cufft.set_work_area) && found(library, "cufftExecC2C", &cufft.execute);
}

/* What cudaSetDevice(0) does: the device's primary context, which Weir uses, becomes the thread's. */
static int use_first_device(void) {
    static const char* const files[] = {"libcuda.so.1", NULL};
    void* const driver = opened("WEIR_CUDA_DRIVER", files);
    int (*retain)(void** context, int device) = NULL;
    int (*set_current)(void* context) = NULL;
    void* context = NULL;
    return driver != NULL && found(driver, "cuDevicePrimaryCtxRetain", &retain) &&
           found(driver, "cuCtxSetCurrent", &set_current) && retain(&context, 0) == 0 && set_current(context) == 0;
}

/* ---- The wrapper: one access scope around the launches. ---- */

/* A plan with its workspace. The token stands for the plan, which has room for one stream at a time. */
typedef struct fft {
    int plan;
    weir_token* in_use;
    weir_buffer* workspace;
} fft;

static int fft_create(const weir_stream* stream, fft* made) {
    long long n = count;
    size_t bytes = 0;
    if (cufft.create(&made->plan) != 0 || cufft.set_auto_allocation(made->plan, 0) != 0 ||
        cufft.make_plan_many(made->plan, 1, &n, &n, 1, count, &n, 1, count, complex_to_complex, 1, &bytes) != 0) {
        return 0;
    }
    CHECK(weir_token_create("cuFFT plan", &made->in_use));
    CHECK(weir_buffer_allocate(stream, bytes > 0 ? bytes : 1, WEIR_SITE(NULL), &made->workspace));
    return 1;
}

/* Enqueues y = FFT(x) on any stream of the device. Does not block. */
static weir_status fft_execute(const fft* with, const weir_stream* stream, const weir_buffer* x, const weir_buffer* y) {
    const weir_operand operands[] = {weir_operand_of(x, WEIR_IN), weir_operand_of(y, WEIR_OUT),
                                     weir_operand_of(with->workspace, WEIR_OUT),
                                     weir_operand_of_token(with->in_use, WEIR_INOUT)};
    weir_access* scope = NULL;
    const weir_status begun = weir_access_begin(stream, operands, 4, WEIR_SITE("cuFFT"), &scope);
    if (begun != WEIR_OK) {
        return begun;
    }
    const int launched =
        cufft.set_stream(with->plan, weir_access_native(scope)) == 0 &&
        cufft.set_work_area(with->plan, weir_access_pointer(scope, 2)) == 0 &&
        cufft.execute(with->plan, weir_access_pointer(scope, 0), weir_access_pointer(scope, 1), forward) == 0;
    const weir_status ended = weir_access_end(scope);
    return launched ? ended : WEIR_ERROR_OTHER;
}

int main(void) {
    weir_device* gpu = NULL;
    if (weir_device_open("cuda:0", &gpu) != WEIR_OK) {
        printf("skipped: %s\n", weir_last_error());
        return 0;
    }
    if (!has_cufft() || !use_first_device()) {
        puts("skipped: there is no cuFFT; Python's package nvidia-cufft has it, and WEIR_CUFFT_LIBRARY names the file");
        return 0;
    }
    weir_stream* load = NULL;
    weir_stream* streams[2] = {NULL, NULL};
    weir_buffer* x[buffers];
    weir_buffer* y[buffers];
    fft transform;
    CHECK(weir_stream_create(gpu, "load", 0, WEIR_STREAM_DEFAULT, &load));
    CHECK(weir_stream_create(gpu, "left", 0, WEIR_STREAM_DEFAULT, &streams[0]));
    CHECK(weir_stream_create(gpu, "right", 0, WEIR_STREAM_DEFAULT, &streams[1]));
    if (!fft_create(load, &transform)) {
        return 1;
    }

    /* No event and no wait: each transform starts after its input is loaded, and after the plan is free. */
    for (int i = 0; i < buffers; ++i) {
        number impulse[count] = {{0, 0}};
        impulse[0].real = (float)(i + 1);
        CHECK(weir_buffer_allocate(load, sizeof impulse, WEIR_SITE(NULL), &x[i]));
        CHECK(weir_buffer_allocate(load, sizeof impulse, WEIR_SITE(NULL), &y[i]));
        CHECK(weir_write(load, x[i], 0, impulse, sizeof impulse, WEIR_SITE("load")));
        CHECK(fft_execute(&transform, streams[i % 2], x[i], y[i]));
        weir_buffer_drop(x[i]); /* while it is in use */
    }
    int wrong = 0;
    for (int i = 0; i < buffers; ++i) {
        number result[count];
        CHECK(weir_read(y[i], 0, result, sizeof result, WEIR_SITE(NULL)));
        for (int k = 0; k < count; ++k) {
            wrong += result[k].real != (float)(i + 1) || result[k].imaginary != 0;
        }
        weir_buffer_drop(y[i]);
    }
    printf("%d transforms, %d numbers wrong\n", buffers, wrong);

    CHECK(weir_device_synchronize(gpu));
    cufft.destroy(transform.plan);
    weir_token_drop(transform.in_use);
    weir_buffer_drop(transform.workspace);
    weir_stream_drop(streams[0]);
    weir_stream_drop(streams[1]);
    weir_stream_drop(load);
    return wrong == 0 ? 0 : 1;
}
