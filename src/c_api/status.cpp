#include "c_api/status.hpp"

#include <exception>
#include <new>
#include <string_view>

namespace weir::c_api {

namespace {

/// Of the calling thread. The text is a copy, unless there was no memory for one.
struct last_error {
    std::string copy;
    const char* text = "";

    void keep(const char* what) noexcept {
        try {
            copy = what;
            text = copy.c_str();
        } catch (const std::bad_alloc&) {
            text = "no memory is left, not even for the message";
        }
    }
};

last_error& of_this_thread() noexcept {
    thread_local last_error last;
    return last;
}

weir_status keep(const char* what, weir_status status) noexcept {
    of_this_thread().keep(what);
    return status;
}

}  // namespace

weir_status status_of_handled() noexcept {
    try {
        throw;
    } catch (const argument_error& failed) {
        return keep(failed.what(), WEIR_ERROR_ARGUMENT);
    } catch (const argument_type_error& failed) {
        return keep(failed.what(), WEIR_ERROR_ARGUMENT);
    } catch (const state_error& failed) {
        return keep(failed.what(), WEIR_ERROR_STATE);
    } catch (const operation_error& failed) {
        return keep(failed.what(), WEIR_ERROR_OPERATION);
    } catch (const device_error& failed) {
        return keep(failed.what(), WEIR_ERROR_DEVICE);
    } catch (const missing_library& failed) {
        return keep(failed.what(), WEIR_ERROR_MISSING_LIBRARY);
    } catch (const race_error& failed) {
        return keep(failed.what(), WEIR_ERROR_RACE);
    } catch (const out_of_memory& failed) {
        return keep(failed.what(), WEIR_ERROR_OUT_OF_MEMORY);
    } catch (const std::bad_alloc&) {
        return keep("no memory of the host is left", WEIR_ERROR_OUT_OF_MEMORY);
    } catch (const std::exception& failed) {
        return keep(failed.what(), WEIR_ERROR_OTHER);
    } catch (...) {
        return keep("an exception that is no std::exception", WEIR_ERROR_OTHER);
    }
}

}  // namespace weir::c_api

const char* weir_last_error(void) { return weir::c_api::of_this_thread().text; }

const char* weir_status_name(weir_status status) {
    switch (status) {
        case WEIR_OK:
            return "WEIR_OK";
        case WEIR_ERROR_ARGUMENT:
            return "WEIR_ERROR_ARGUMENT";
        case WEIR_ERROR_STATE:
            return "WEIR_ERROR_STATE";
        case WEIR_ERROR_OUT_OF_MEMORY:
            return "WEIR_ERROR_OUT_OF_MEMORY";
        case WEIR_ERROR_OPERATION:
            return "WEIR_ERROR_OPERATION";
        case WEIR_ERROR_DEVICE:
            return "WEIR_ERROR_DEVICE";
        case WEIR_ERROR_MISSING_LIBRARY:
            return "WEIR_ERROR_MISSING_LIBRARY";
        case WEIR_ERROR_RACE:
            return "WEIR_ERROR_RACE";
        case WEIR_ERROR_OTHER:
            return "WEIR_ERROR_OTHER";
        default:
            return "unknown status";
    }
}
