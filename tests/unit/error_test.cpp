// Errors as a caller of Weir handles them (rule X10, docs/errors.md).
#include "weir/error.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "weir/weir.hpp"

namespace weir {
namespace {

template <class Error, class Standard>
concept is_also = std::derived_from<Error, error> && std::derived_from<Error, Standard> &&
    std::derived_from<Error, std::exception>;  // each base once: else derived_from does not hold

static_assert(is_also<argument_error, std::invalid_argument>);
static_assert(is_also<argument_type_error, std::invalid_argument>);
static_assert(is_also<out_of_memory, std::bad_alloc>);
static_assert(is_also<state_error, std::runtime_error>);
static_assert(is_also<operation_error, std::runtime_error>);
static_assert(is_also<device_error, std::runtime_error>);
static_assert(is_also<missing_library, std::runtime_error>);
static_assert(is_also<file_error, std::runtime_error>);
static_assert(is_also<race_error, std::runtime_error>);
static_assert(is_also<exchange_error, std::runtime_error>);
static_assert(is_also<copy_error, std::runtime_error> && std::derived_from<copy_error, exchange_error>);

template <class... Errors>
constexpr bool copy_without_throwing = ((std::is_nothrow_copy_constructible_v<Errors> &&
                                         std::is_nothrow_copy_assignable_v<Errors>)&&...);
static_assert(copy_without_throwing<argument_error, argument_type_error, out_of_memory, state_error, operation_error,
                                    device_error, missing_library, file_error, race_error, exchange_error, copy_error>);

template <class Caught>
std::string caught_as(void (*make)()) {
    try {
        make();
    } catch (const Caught& thrown) {
        return thrown.what();
    } catch (...) {
    }
    return "something else";
}

void refuse_memory() {
    const memory::use scope(memory::limiting(64));
    static_cast<void>(buffer(4096, current_stream()));
}

TEST(X10Errors, OutOfMemoryIsCaughtAsWhatAnyCodeKnows) {
    const std::string message = caught_as<error>(refuse_memory);
    EXPECT_NE(message.find("4096 bytes"), std::string::npos) << message;
    EXPECT_EQ(caught_as<out_of_memory>(refuse_memory), message);
    EXPECT_EQ(caught_as<std::bad_alloc>(refuse_memory), message);
    EXPECT_EQ(caught_as<std::exception>(refuse_memory), message);
    EXPECT_EQ(caught_as<std::runtime_error>(refuse_memory), "something else");
}

TEST(X10Errors, AnArgumentErrorIsAnInvalidArgument) {
    const auto ask = [] { static_cast<void>(device::from_name("nowhere")); };
    const std::string message = caught_as<error>(ask);
    EXPECT_NE(message.find("nowhere"), std::string::npos) << message;
    EXPECT_EQ(caught_as<std::invalid_argument>(ask), message);
    EXPECT_EQ(caught_as<std::logic_error>(ask), message);
    EXPECT_EQ(caught_as<std::exception>(ask), message);
}

TEST(X10Errors, ACopyThatIsNeededIsAnExchangeError) {
    const auto ask = [] { static_cast<void>(zeros(1).view_on(sim(0))); };
    const std::string message = caught_as<error>(ask);
    EXPECT_NE(message.find("sim:0"), std::string::npos) << message;
    EXPECT_EQ(caught_as<copy_error>(ask), message);
    EXPECT_EQ(caught_as<exchange_error>(ask), message);
    EXPECT_EQ(caught_as<std::runtime_error>(ask), message);
    EXPECT_EQ(caught_as<argument_error>(ask), "something else");
}

TEST(X10Errors, CopiesShareTheirTexts) {
    const out_of_memory memory("no memory");
    EXPECT_EQ(out_of_memory(memory).what(), memory.what()) << "the same address";
    const operation_error failed("it failed", "load", source_location::current());
    const operation_error copy = failed;
    EXPECT_EQ(&copy.label(), &failed.label());
    EXPECT_EQ(copy.what(), failed.what());
    EXPECT_EQ(copy.label(), "load");
    EXPECT_EQ(copy.where().line, failed.where().line);
}

}  // namespace
}  // namespace weir
