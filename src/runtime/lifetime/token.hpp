#pragma once

#include <string>

#include "runtime/lifetime/resource.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::runtime {

/// What a token tracks: a resource of one byte that is nowhere.
class token_resource final : public resource, public weir::detail::counted<token_resource> {
public:
    /// May throw std::bad_alloc.
    explicit token_resource(std::string name);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// What is pending keeps its place in streams, and needs nothing of this. Any thread.
    void last_owner_gone() noexcept;

private:
    ~token_resource() = default;

    std::string name_;
};

/// `token "name"`, or `token #12`.
[[nodiscard]] std::string token_in_words(const token_resource& one);

}  // namespace weir::runtime
