#include "backend/cuda/device/description.hpp"

#include <array>
#include <cstdio>

namespace weir::backend::cuda {

namespace {

int attribute_of(const driver_api& api, device_number which, device_attribute wanted) {
    int value = 0;
    expect(api, api.device_attribute(&value, wanted, which), "cuDeviceGetAttribute");
    return value;
}

/// In the format of cuDeviceGetPCIBusId and nvidia-smi.
std::string pci_id_of(const driver_api& api, device_number which) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0",
                  static_cast<unsigned>(attribute_of(api, which, device_attribute::pci_domain)),
                  static_cast<unsigned>(attribute_of(api, which, device_attribute::pci_bus)),
                  static_cast<unsigned>(attribute_of(api, which, device_attribute::pci_device)));
    return text.data();
}

}  // namespace

description describe(const driver_api& api, int id, int devices) {
    device_number which = 0;
    expect(api, api.device_get(&which, id), "cuDeviceGet");
    description found;
    std::array<char, 256> model{};
    expect(api, api.device_name(model.data(), static_cast<int>(model.size()), which), "cuDeviceGetName");
    found.model = model.data();
    expect(api, api.device_total_memory(&found.memory_bytes, which), "cuDeviceTotalMem");
    found.major = attribute_of(api, which, device_attribute::compute_capability_major);
    found.minor = attribute_of(api, which, device_attribute::compute_capability_minor);
    found.pci_id = pci_id_of(api, which);
    for (int other = 0; other < devices; ++other) {
        device_number peer = 0;
        int can = 0;
        if (other != id && api.device_get(&peer, other) == success &&
            api.device_can_access_peer(&can, which, peer) == success && can != 0) {
            found.peers.push_back(other);
        }
    }
    return found;
}

}  // namespace weir::backend::cuda
