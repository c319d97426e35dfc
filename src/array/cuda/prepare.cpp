#include "array/cuda/prepare.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "array/cuda/known_kernels.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/error.hpp"

namespace weir::array_kernels {

namespace {

using backend::capability::compiled_program;
using backend::capability::kernels;

/// The sets on their way from texts to images. Threads take them one by one.
class compilation {
public:
    compilation(const kernels& in, std::span<const kernel_set> sets) : in_(&in), sets_(sets), done_(sets.size()) {
        for (std::size_t i = 0; i < sets.size(); ++i) {
            if (!known_kernels::instance().has_all(in, sets[i])) {
                wanted_.push_back(i);
            }
        }
    }

    /// Compiles them all. The calling thread takes part, so that this ends even if no other thread can be started.
    void run() {
        std::vector<std::thread> helpers;
        const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
        const std::size_t wanted = std::min(wanted_.size(), processors);
        try {
            helpers.reserve(wanted);
            while (helpers.size() + 1 < wanted) {
                helpers.emplace_back([this] {
                    const detail::fork_section at_work;  // the caller waits for this thread
                    work();
                });
            }
        } catch (const std::system_error&) {
            // Fewer threads do the same.
        } catch (const std::bad_alloc&) {
        }
        work();
        for (std::thread& one : helpers) {
            one.join();
        }
    }

    [[nodiscard]] std::span<const std::size_t> wanted() const noexcept { return wanted_; }

    /// The image of a set. Throws what its compilation threw.
    [[nodiscard]] const compiled_program& of(std::size_t set) const {
        if (done_[set].failure) {
            std::rethrow_exception(done_[set].failure);
        }
        return *done_[set].program;
    }

private:
    struct outcome {
        std::optional<compiled_program> program;
        std::exception_ptr failure;
    };

    void work() noexcept {
        while (true) {
            const std::size_t next = next_.fetch_add(1, std::memory_order_relaxed);
            if (next >= wanted_.size()) {
                return;
            }
            outcome& mine = done_[wanted_[next]];
            try {
                const std::string first = name_in_set(0);
                mine.program = in_->compile({source_of(sets_[wanted_[next]]), first, compiler_options()});
            } catch (...) {
                mine.failure = std::current_exception();
            }
        }
    }

    const kernels* in_;
    std::span<const kernel_set> sets_;
    std::vector<std::size_t> wanted_;
    std::vector<outcome> done_;  ///< each written by one thread, and read when that thread has ended
    std::atomic<std::size_t> next_{0};
};

void load(const kernels& in, const kernel_set& set, const compiled_program& program) {
    std::unique_ptr<backend::capability::loaded_code> code = in.load(program.image, "kernels of arrays");
    std::vector<backend::capability::function_handle> functions;
    for (std::size_t i = 0; i < set.size(); ++i) {
        functions.push_back(code->find(name_in_set(i)));
        if (functions.back() == nullptr) {
            throw device_error("a compiled set of kernels has none with the name " + name_in_set(i));
        }
    }
    known_kernels::instance().add(in, set, functions, std::move(code));
}

}  // namespace

void prepare(const kernels& in, std::span<const kernel_set> sets) {
    compilation all(in, sets);
    all.run();
    try {
        for (const std::size_t set : all.wanted()) {
            load(in, sets[set], all.of(set));
        }
    } catch (const argument_error& wrong) {
        throw device_error(wrong.what());  // the source is Weir's, not an argument of the caller
    }
}

}  // namespace weir::array_kernels
