// Linked with test programs that are marked to have one thread, and that the thread sanitizer therefore does not run: a program that
// starts another thread ends with an error.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* /*made*/, const pthread_attr_t* /*attributes*/, void* (* /*code*/)(void*),
                              void* /*argument*/) noexcept {
    std::fputs("this program is said to have one thread (ONE_THREAD in a CMakeLists.txt), and starts another\n",
               stderr);
    std::abort();
}
