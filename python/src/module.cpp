// The extension module of the package `weir`: one bind_* function for each concept, in the order in which they need each other.
#include "bind.hpp"

#include "arrays.hpp"
#include "asyncio.hpp"
#include "borrow_nesting.hpp"
#include "call_log.hpp"
#include "checking.hpp"
#include "devices.hpp"
#include "errors.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "labelling.hpp"
#include "scopes.hpp"
#include "site.hpp"
#include "work.hpp"
#include "wrong_calls.hpp"

NB_MODULE(_weir, m) {  // NOLINT
    using namespace weir::python;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        throw nanobind::import_error(
            "weir works in the main interpreter only: import it there, or use another process");
    }
    m.attr("__version__") = WEIR_VERSION;
    scopes::initialize();
    borrow_nesting::initialize();
    bind_errors(m);
    bind_devices(m);
    bind_streams(m);
    bind_events(m);
    bind_asyncio(m);
    bind_ordering(m);
    bind_call_log(m);
    bind_labelling(m);
    bind_checking(m);
    bind_torch_launch(m);
    bind_torch_order(m);
    bind_torch_watch(m);
    bind_tracing(m);
    bind_tokens(m);
    bind_accesses(m);
    bind_arrays(m);
    bind_creation(m);
    bind_importing(m);
    bind_borrowing(m);
    bind_transfers(m);
    bind_host_tasks(m);
    bind_kernels(m);
    bind_body_kernels(m);
    bind_elementwise(m);
    bind_reduction_kernels(m);
    bind_parallel(m);
    bind_fft(m);
    bind_linalg(m);
    bind_sparse(m);
    bind_memory(m);
    bind_captures(m);
    bind_testing(m);
    explain_wrong_calls(m);
    // Finds the package's folder now, on one thread: later, other threads would wait for the search while the interpreter waits for them.
    static_cast<void>(here());
    interpreter::watch_exit(m, []() noexcept {
        forget_current_streams();
        forget_last_event();
    });
}
