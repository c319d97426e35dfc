#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace weir::detail {

/// Base of classes whose objects are made and ended again and again: each thread keeps the memory of some that it ended, for
/// those it makes next. `T` is not derived from further.
template <class T>
class keeps_memory {
public:
    [[nodiscard]] static void* operator new(std::size_t bytes) {
        kept* const own = of_thread();
        if (own != nullptr && own->first != nullptr) [[likely]] {
            piece* const taken = own->first;
            own->first = taken->next;
            --own->count;
            return taken;
        }
        return ::operator new(bytes);
    }
    static void operator delete(void* memory) noexcept {
        kept* const own = of_thread();
        if (own != nullptr && own->count != most) [[likely]] {
            own->first = ::new (memory) piece{own->first};
            ++own->count;
        } else {
            ::operator delete(memory);
        }
    }

protected:
    keeps_memory() = default;
    ~keeps_memory() = default;

private:
    static constexpr std::size_t most = 32;

    struct piece {
        piece* next;
    };
    struct kept {
        piece* first = nullptr;
        std::size_t count = 0;

        ~kept() {
            has_ended = true;
            while (first != nullptr) {
                ::operator delete(std::exchange(first, first->next));
            }
        }
    };
    static inline constinit thread_local bool has_ended = false;

    /// Null once the thread ends, and under the sanitizer that looks for uses after the end.
    [[nodiscard]] static kept* of_thread() noexcept {
#ifdef __SANITIZE_ADDRESS__
        return nullptr;
#else
        static thread_local kept own;
        return has_ended ? nullptr : &own;
#endif
    }
};

}  // namespace weir::detail
