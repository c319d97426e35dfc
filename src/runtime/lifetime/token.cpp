#include "runtime/lifetime/token.hpp"

#include <utility>

#include "observe/observers.hpp"
#include "runtime/host/fork.hpp"
#include "weir/error.hpp"
#include "weir/token.hpp"

namespace weir {

namespace runtime {

token_resource::token_resource(std::string name) : resource(1), name_(std::move(name)) { be_token(name_.c_str()); }

void token_resource::last_owner_gone() noexcept {
    if (fork_guard::is_refused()) {
        return;  // a thread that is gone may hold the observers' locks: better leak than hang (rule L3)
    }
    observe::observers::notify([&](observe::observer& one) { one.dropped(id()); });
    retire();
    delete this;  // NOLINT(cppcoreguidelines-owning-memory): its owners were counted
}

std::string token_in_words(const token_resource& one) {
    return one.name().empty() ? "token #" + std::to_string(one.id()) : "token \"" + one.name() + "\"";
}

}  // namespace runtime

token::token(const std::string& name, source_location where) : state_(new runtime::token_resource(name)) {
    observe::observers::notify([&](observe::observer& one) {
        one.allocated({state_->id(), state_->size(), {}, 0, nullptr, where});
    });
}

token::token(const token&) noexcept = default;
token::token(token&&) noexcept = default;
token& token::operator=(const token&) noexcept = default;
token& token::operator=(token&&) noexcept = default;
token::~token() = default;

std::string token::name() const { return state_ ? state_->name() : std::string(); }

std::uint64_t token::unique_id() const noexcept { return state_ ? state_->id() : 0; }

void token::set_ordering(std::optional<ordering_mode> mode) const noexcept {
    if (state_) {
        state_->set_ordering(mode);
    }
}

std::optional<ordering_mode> token::ordering() const noexcept { return state_ ? state_->ordering() : std::nullopt; }

std::string token::to_string() const {
    return state_ ? "<weir." + runtime::token_in_words(*state_) + ">" : "<weir.token of nothing>";
}

runtime::resource* token::resource(detail::passkey /*key*/) const noexcept { return state_.get(); }

runtime::resource& token::expect_resource(detail::passkey /*key*/) const {
    if (!state_) {
        throw argument_error(
            "the operand is a token that was moved from and stands for nothing: pass the one that it was moved to");
    }
    return *state_;
}

}  // namespace weir
