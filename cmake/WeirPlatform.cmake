# The platforms that Weir is written for and tested on. The configuration stops or warns on any other.
#
# Linux: the library calls futex(2) and membarrier(2), and opens the libraries of devices with dlopen(3).
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "Weir builds on Linux alone: it uses futexes, membarrier and dlopen. "
        "This build is for ${CMAKE_SYSTEM_NAME}.")
endif()

# GCC or Clang: the code uses their attributes, builtins and inline assembler. The oldest versions that the tests run with.
set(weir_oldest_GNU 12)
set(weir_oldest_Clang 14)
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    message(WARNING "Weir is tested with GCC and Clang alone; ${CMAKE_CXX_COMPILER_ID} is untested: it must know the "
        "attributes and builtins of GCC.")
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS weir_oldest_${CMAKE_CXX_COMPILER_ID})
    message(WARNING "Weir is tested with GCC ${weir_oldest_GNU}, Clang ${weir_oldest_Clang} and later; "
        "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} is untested: it may lack parts of C++20.")
endif()

# x86-64: other processors order memory accesses more weakly, and the tests of the lock-free parts have not run there.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    message(WARNING "Weir is tested on x86-64 alone; ${CMAKE_SYSTEM_PROCESSOR} is untested: processors that order memory "
        "accesses more weakly may show races in Weir's lock-free parts.")
endif()
