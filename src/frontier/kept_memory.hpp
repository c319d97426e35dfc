#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace weir::detail {

/// Base of classes whose objects are made and ended again and again: each thread keeps the memory of some that it ended, for
/// those it makes next. Not more than it has asked for itself, so that a thread that ends what others make keeps nothing. `T` is
/// not derived from further.
///
/// There are `Sizes` sizes of it: the first is that of `T`, each other one is larger by `T`'s alignment than the one before it.
template <class T, std::size_t Sizes = 1>
class keeps_memory {
public:
    [[nodiscard]] static void* operator new(std::size_t /*bytes*/) { return take(0); }
    static void operator delete(void* memory) noexcept { give(memory, 0); }

protected:
    /// Memory of the size with this number. Throws std::bad_alloc.
    [[nodiscard]] static void* take(std::size_t size) {
        if (may_keep()) [[likely]] {
            own_pieces& own = of_thread()[size];
            if (own.first != nullptr) [[likely]] {
                --own.count;
                return std::exchange(own.first, own.first->next);
            }
            own.asked_for += own.asked_for != most ? 1 : 0;
        }
        return ::operator new(sizeof(T) + size * alignof(T), alignment());
    }
    /// Ends it.
    static void give(void* memory, std::size_t size) noexcept {
        if (may_keep()) [[likely]] {
            own_pieces& own = of_thread()[size];
            if (own.count != own.asked_for) [[likely]] {
                own.first = ::new (memory) piece{own.first};
                ++own.count;
                return;
            }
        }
        ::operator delete(memory, alignment());
    }

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
    struct own_pieces {
        piece* first = nullptr;
        std::size_t count = 0;
        std::size_t asked_for = 0;  ///< of the system, `most` at most

        ~own_pieces() {
            has_ended = true;
            while (first != nullptr) {
                ::operator delete(std::exchange(first, first->next), alignment());
            }
        }
    };
    static inline constinit thread_local bool has_ended = false;

    /// Not while the thread ends.
    [[nodiscard]] static bool may_keep() noexcept { return !is_sanitized && !has_ended; }
    [[nodiscard]] static std::array<own_pieces, Sizes>& of_thread() noexcept {
        static thread_local std::array<own_pieces, Sizes> own;
        return own;
    }
};

}  // namespace weir::detail
