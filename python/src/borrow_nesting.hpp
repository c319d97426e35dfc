// Borrows that a thread is inside of, and the order in which they end (rule X6).
#pragma once

#include <memory>

namespace weir::python {

/// A thread's place inside a borrow that has made its stream the current one of torch and CuPy. These have one current stream for each
/// thread, which asyncio tasks share. So such borrows of a thread nest, whichever task entered them: all are of one context, and end on
/// their thread, innermost first. All functions need the GIL.
class borrow_nesting {
public:
    borrow_nesting() noexcept;
    /// A borrow that never ended counts no more.
    ~borrow_nesting();
    borrow_nesting(const borrow_nesting&) = delete;
    borrow_nesting& operator=(const borrow_nesting&) = delete;

    /// Makes the context variable: once, when the module is imported.
    static void initialize();

    /// Throws state_error if the calling thread is inside such a borrow of another context (asyncio task).
    static void expect_may_begin();
    /// The calling thread is inside from now on. Throws std::bad_alloc, nb::python_error; nothing has changed then.
    void begin();
    [[nodiscard]] bool is_inside() const noexcept { return place_ != nullptr; }
    /// The thread is outside again; nothing if it was. Throws state_error on another thread, in another context, and inside of a borrow that began later;
    /// nothing has changed then.
    void end();

private:
    struct place;
    class of_thread;
    std::shared_ptr<place> place_;  ///< null outside
};

}  // namespace weir::python
