#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace weir::detail {

/// Base of classes whose objects are created and destroyed often: each thread keeps the memory of some objects that it destroyed, for
/// those that it creates next. A thread keeps at most as much as it has requested from the system itself, so a thread that destroys
/// objects of other threads keeps nothing. No class may derive from `T`.
///
/// Memory has `Sizes` sizes: the first is that of `T`, each other one is larger than the one before it by `T`'s alignment.
template <class T, std::size_t Sizes = 1>
class keeps_memory {
public:
    [[nodiscard]] static void* operator new(std::size_t /*bytes*/) { return take(0); }
    static void operator delete(void* memory) noexcept { give(memory, 0); }

protected:
    /// Memory of the size with this number. Throws std::bad_alloc.
    [[nodiscard]] static void* take(std::size_t size) {
        if (may_keep()) [[likely]] {
            own_chunks& own = of_thread()[size];
            if (own.first != nullptr) [[likely]] {
                --own.count;
                return std::exchange(own.first, own.first->next);
            }
            own.asked_for += own.asked_for != most ? 1 : 0;
        }
        return ::operator new(sizeof(T) + size * alignof(T), alignment());
    }
    /// Frees memory of the size with this number, or keeps it.
    static void give(void* memory, std::size_t size) noexcept {
        if (may_keep()) [[likely]] {
            own_chunks& own = of_thread()[size];
            if (own.count != own.asked_for) [[likely]] {
                own.first = ::new (memory) chunk{own.first};
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
    // With the address sanitizer, nothing is kept, so that it sees all destructions and finds uses after them.
#ifdef __SANITIZE_ADDRESS__
    static constexpr bool is_sanitized = true;
#else
    static constexpr bool is_sanitized = false;
#endif

    [[nodiscard]] static constexpr std::align_val_t alignment() noexcept { return std::align_val_t{alignof(T)}; }

    struct chunk {
        chunk* next;
    };
    struct own_chunks {
        chunk* first = nullptr;
        std::size_t count = 0;
        std::size_t asked_for = 0;  ///< number of requests to the system, at most `most`

        ~own_chunks() {
            has_ended = true;
            while (first != nullptr) {
                ::operator delete(std::exchange(first, first->next), alignment());
            }
        }
    };
    static inline constinit thread_local bool has_ended = false;

    /// False while the thread ends.
    [[nodiscard]] static bool may_keep() noexcept { return !is_sanitized && !has_ended; }
    [[nodiscard]] static std::array<own_chunks, Sizes>& of_thread() noexcept {
        static thread_local std::array<own_chunks, Sizes> own;
        return own;
    }
};

}  // namespace weir::detail
