// Arrays for a library that speaks DLPack, and arrays of that library: docs/exchange.md.
#include <weir/dlpack.hpp>
#include <weir/weir.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace dlpack = weir::exchange::dlpack;

// The other library: it computes on the CPU, and has no queues, so that its work is complete when its calls return.
namespace theirs {

// It takes a structure, owns it, and calls the deleter when it needs the memory no longer.
class vector {
public:
    explicit vector(dlpack::managed_tensor_versioned* from) : from_(from) {
        const dlpack::tensor& what = from->what;
        const bool fits = from->version.major == 1 && what.on.type == dlpack::device_type::cpu &&
                          what.type == weir::to_dlpack_dtype(weir::dtype::float32) && what.dimensions == 1 &&
                          (what.strides == nullptr || what.strides[0] == 1) && (from->flags & dlpack::read_only) == 0;
        if (!fits) {
            from->deleter(from);
            throw std::runtime_error("this is no vector of float that may be written");
        }
    }
    vector(const vector&) = delete;
    vector& operator=(const vector&) = delete;
    ~vector() { from_->deleter(from_); }

    void multiply(float by) {
        for (std::int64_t i = 0; i < from_->what.shape[0]; ++i) {
            first()[i] *= by;
        }
    }
    float at(std::int64_t i) const { return first()[i]; }

private:
    float* first() const { return static_cast<float*>(from_->what.data) + from_->what.byte_offset / sizeof(float); }

    dlpack::managed_tensor_versioned* from_;
};

// It gives a structure: the memory lives until the consumer calls the deleter.
struct numbers {
    std::vector<float> values;
    std::int64_t shape = 0;
    std::int64_t stride = 1;
    dlpack::managed_tensor_versioned managed;
};

dlpack::managed_tensor_versioned* make_numbers(std::vector<float> values) {
    auto made = std::make_unique<numbers>();
    made->values = std::move(values);
    made->shape = static_cast<std::int64_t>(made->values.size());
    dlpack::tensor& what = made->managed.what;
    what.data = made->values.data();
    what.dimensions = 1;
    what.type = weir::to_dlpack_dtype(weir::dtype::float32);
    what.shape = &made->shape;
    what.strides = &made->stride;
    made->managed.context = made.get();
    made->managed.deleter = [](dlpack::managed_tensor_versioned* self) { delete static_cast<numbers*>(self->context); };
    return &made.release()->managed;
}

}  // namespace theirs

// What Weir has to know of the library: that it has no stream which an operation could wait for.
class their_library final : public weir::package {
public:
    std::string_view name() const noexcept override { return "theirs"; }
    std::optional<weir::stream> current_stream(weir::device) override { return std::nullopt; }
};

int main() {
    const auto library = std::make_shared<their_library>();
    const weir::stream s;

    weir::array x = weir::ones(1000, weir::dtype::float32);
    weir::fill(s, x, 2);                  // enqueued, perhaps not yet complete
    static_cast<void>(x.write<float>());  // the host waits for what the library must come after
    theirs::vector taken(weir::exchange::to_dlpack(x, {library}).release());
    taken.multiply(10);
    x += 1;  // complete when this returns, because the library may read the memory at any time
    const bool out = taken.at(0) == 21;

    weir::array y =
        weir::exchange::from_dlpack(weir::exchange::dlpack_tensor(theirs::make_numbers({1, 2, 3})), library);
    y *= x.slice(0, 3);  // also complete when this returns
    const bool in = y.read<float>()[2] == 63;

    return out && in ? 0 : 1;
}
