// The smallest program that uses Weir: a stream. Of a static library a linker takes only the files that it refers to.
#include <weir/stream.hpp>

int main() {
    const weir::stream stream;
    stream.synchronize();
    return 0;
}
