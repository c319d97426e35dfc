// Linked with test programs that are said to have one thread, for which reason the thread sanitizer does not run them: whoever
// starts another there learns that it is no longer true.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t* /*made*/, const pthread_attr_t* /*attributes*/, void* (* /*code*/)(void*),
                              void* /*argument*/) noexcept {
    std::fputs("this program is said to have one thread (ONE_THREAD in a CMakeLists.txt), and starts another\n",
               stderr);
    std::abort();
}
