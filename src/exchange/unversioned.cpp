// DLPack's structures of before version 1.0.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/exchange_table.hpp"

namespace weir::exchange {

namespace {

/// A structure without a version, which owns one with a version.
struct unversioned {
    dlpack::managed_tensor managed;
    dlpack_tensor of;

    explicit unversioned(dlpack_tensor tensor) : of(std::move(tensor)) {
        managed.what = of->what;
        managed.context = this;
        managed.deleter = let_go;
    }
    /// The deleter. Its address also identifies structures that were made here.
    static void let_go(dlpack::managed_tensor* self) { delete static_cast<unversioned*>(self->context); }
};

/// A structure with a version, which owns one without.
struct versioned {
    dlpack::managed_tensor_versioned managed;
    dlpack_tensor_unversioned of;

    versioned(dlpack_tensor_unversioned tensor, std::uint64_t flags) : of(std::move(tensor)) {
        managed.what = of->what;
        managed.flags = flags;
        managed.context = this;
        managed.deleter = let_go;
    }
    static void let_go(dlpack::managed_tensor_versioned* self) { delete static_cast<versioned*>(self->context); }
};

}  // namespace

dlpack_tensor_unversioned without_version(dlpack_tensor tensor) {
    if (!tensor) {
        throw argument_error("without_version() got no tensor");
    }
    if ((tensor->flags & dlpack::read_only) != 0) {
        throw exchange_error(
            "a DLPack tensor is read-only, which a structure without a version cannot say: pass the consumer the one "
            "with a "
            "version, or export a copy");
    }
    return dlpack_tensor_unversioned(&(new unversioned(std::move(tensor)))->managed);
}

dlpack_tensor with_version(dlpack_tensor_unversioned tensor, std::uint64_t flags) {
    if (!tensor) {
        throw argument_error("with_version() got no tensor");
    }
    return dlpack_tensor(&(new versioned(std::move(tensor), flags))->managed);
}

std::optional<array> exported_array(const dlpack::managed_tensor& of) {
    if (of.deleter != unversioned::let_go) {
        return std::nullopt;
    }
    return exported_array(*static_cast<const unversioned*>(of.context)->of);
}

}  // namespace weir::exchange
