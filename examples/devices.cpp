// What a program can learn about the devices of a machine before it uses one: nothing is opened.
#include <iostream>
#include <weir/weir.hpp>

int main() {
    for (const weir::device& each : weir::devices()) {
        const weir::device_description about = each.describe();
        std::cout << each.name() << ": " << about.model << ", " << (about.memory_bytes >> 20) << " MiB";
        std::cout << " " << about.architecture << " " << about.pci_id;
        for (const weir::device& other : about.reaches) {
            std::cout << ", reaches " << other.name();
        }
        std::cout << "\n";
    }
}
