#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace weir::detail {

/// Base of classes whose objects are made and ended again and again: each thread keeps the memory of some that it ended, for
/// those it makes next. Not more than it has asked for itself, so that a thread that ends what others make keeps nothing. `T` is
/// not derived from further.
template <class T>
class keeps_memory {
public:
    [[nodiscard]] static void* operator new(std::size_t bytes) {
        if (may_keep()) [[likely]] {
            kept& own = of_thread();
            if (own.first != nullptr) [[likely]] {
                --own.count;
                return std::exchange(own.first, own.first->next);
            }
            own.asked_for += own.asked_for != most ? 1 : 0;
        }
        return ::operator new(bytes, alignment());
    }
    static void operator delete(void* memory) noexcept {
        if (may_keep()) [[likely]] {
            kept& own = of_thread();
            if (own.count != own.asked_for) [[likely]] {
                own.first = ::new (memory) piece{own.first};
                ++own.count;
                return;
            }
        }
        ::operator delete(memory, alignment());
    }

protected:
    keeps_memory() = default;
    ~keeps_memory() = default;

private:
    static constexpr std::size_t most = 32;
    // The sanitizer is to see all ends, so that it finds uses after them.
#ifdef __SANITIZE_ADDRESS__
    static constexpr bool is_sanitized = true;
#else
    static constexpr bool is_sanitized = false;
#endif

    [[nodiscard]] static constexpr std::align_val_t alignment() noexcept { return std::align_val_t{alignof(T)}; }

    struct piece {
        piece* next;
    };
    struct kept {
        piece* first = nullptr;
        std::size_t count = 0;
        std::size_t asked_for = 0;  ///< of the system, `most` at most

        ~kept() {
            has_ended = true;
            while (first != nullptr) {
                ::operator delete(std::exchange(first, first->next), alignment());
            }
        }
    };
    static inline constinit thread_local bool has_ended = false;

    /// Not while the thread ends.
    [[nodiscard]] static bool may_keep() noexcept { return !is_sanitized && !has_ended; }
    [[nodiscard]] static kept& of_thread() noexcept {
        static thread_local kept own;
        return own;
    }
};

}  // namespace weir::detail
