#include "cli/demo/sound_library.hpp"

#include "calls/shared_library.hpp"

namespace weir::demo {

namespace {

sound_library open_library() {
    const calls::shared_library library({"libsndfile.so.1", "WEIR_SNDFILE_LIBRARY", "libsndfile1"});
    sound_library f;
    library.find("sf_open", f.open);
    library.find("sf_close", f.close);
    library.find("sf_readf_float", f.read);
    library.find("sf_writef_float", f.write);
    library.find("sf_command", f.command);
    library.find("sf_strerror", f.error_text);
    library.find("sf_version_string", f.version_text);
    f.file = library.file();
    return f;
}

}  // namespace

const sound_library& sounds() {
    static const sound_library library = open_library();
    return library;
}

}  // namespace weir::demo
