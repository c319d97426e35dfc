// The key to members that only Weir itself may call. Layer: base.
#pragma once

namespace weir::detail {

/// The first parameter of members that are public only for other parts of Weir, so that no program calls them by accident. Such members
/// are not part of the interface, and change without notice. The constant below is the only way to get one.
class passkey {
public:
    explicit constexpr passkey() noexcept = default;
};

/// Gives access to them: `s.state(detail::key)`.
inline constexpr passkey key{};

}  // namespace weir::detail
