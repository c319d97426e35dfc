#include "weir/poisoning.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/diagnostics/debug_log.hpp"
#include "weir/array.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/dtype.hpp"
#include "weir/launch.hpp"
#include "weir/ordering.hpp"
#include "weir/stream.hpp"

namespace weir::memory {

namespace {

class poisoning_resource final : public memory_resource {
public:
    explicit poisoning_resource(resource_ptr upstream) : upstream_(std::move(upstream)) {}

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        buffer made = allocate_from(upstream_, bytes, alignment, on, where);
        static_cast<void>(stream_of(made.device()));
        return made;
    }

    void dropping(const buffer& memory) noexcept override {
        try {
            memory.set_ordering(ordering_mode::automatic);
            const auto bytes = static_cast<std::int64_t>(memory.bytes());
            fill(on(stream_of(memory.device())).label("poison"), array(memory, dtype::uint8, {bytes}), pattern);
        } catch (const std::exception& error) {
            runtime::debug_log(std::string("poisoning could not fill memory that was freed: ") + error.what());
        }
    }

    /// The stream that fills memory of a device; one for each device.
    stream stream_of(const device& of) {
        const std::lock_guard lock(mutex_);
        const auto found = streams_.find(of.name());
        return found != streams_.end() ? found->second : streams_.emplace(of.name(), stream(of)).first->second;
    }

    static constexpr std::uint8_t pattern = 0xff;

    const resource_ptr upstream_;
    detail::mutex mutex_;  ///< guards streams_
    std::map<std::string, stream> streams_;
};

}  // namespace

resource_ptr poisoning(resource_ptr upstream) { return std::make_shared<poisoning_resource>(std::move(upstream)); }

}  // namespace weir::memory
