// Other array packages of the Python program, as Weir has to know them.
#pragma once

#include "bind.hpp"

#include <memory>
#include <string>
#include <vector>

#include "weir/exchange_table.hpp"
#include "weir/package.hpp"

namespace weir::python {

/// The package that an object is of (see package_name_of): one object for each name, for the process. It finds the package's current
/// stream in Python, with the GIL. On the CPU a package has no stream, and its work is complete when its calls return (rule X6).
[[nodiscard]] std::shared_ptr<package> package_of(nanobind::handle object);

/// The package of that name.
[[nodiscard]] std::shared_ptr<package> package_named(const std::string& name);

/// What the class of an object says of the arrays that are its objects: found once for each class.
struct array_class {
    PyTypeObject* type = nullptr;  ///< owned where the class is remembered
    unsigned version = 0;          ///< Python's number for the state of the class: another one after each change of it
    std::string name;              ///< of the package, as package_name_of
    std::shared_ptr<package> of;
    const exchange::dlpack::exchange_table_header* table = nullptr;
    bool is_plain_numpy = false;  ///< as numpy::is_plain
};

/// The class of an object that hands over by DLPack and not by Arrow; null for other objects. Classes are remembered, as far as there is
/// room; what this says does not depend on that. Needs the GIL.
[[nodiscard]] std::shared_ptr<const array_class> array_class_of(nanobind::handle object);

/// From now on the current stream of the package of that name is read from its exchange table (rule X6). The table lives as long
/// as the process.
void ask_by_table(const std::string& name, const exchange::dlpack::exchange_table& table);

/// The packages in the process that work on streams of CUDA devices, of those that Weir can ask (weir._packages). Needs the GIL.
[[nodiscard]] std::vector<std::shared_ptr<package>> packages_with_streams();

/// A package whose work on memory of the host goes through a queue that Weir can only wait for, as SYCL's: each operation on the memory
/// waits on the host for what is in the queue, and is over when its call returns. `queue` has a method `wait`. Needs the GIL.
[[nodiscard]] std::shared_ptr<package> package_with_queue(std::string name, nanobind::object queue);

/// A package of that name that always works on the stream `on`.
[[nodiscard]] std::shared_ptr<package> package_working_on(std::string name, const stream& on);

/// A package of that name that works on the stream `on`, and that Weir cannot ask. `given` named the stream: an object keeps it, and the
/// default streams stay; of another integer the stream may be gone one day, and then the package has none. Needs the GIL.
[[nodiscard]] std::shared_ptr<package> package_on_stream(std::string name, const stream& on, nanobind::handle given);

/// A consumer on the CPU, whatever it is: it has no queues.
[[nodiscard]] std::shared_ptr<package> host_consumer();

/// Whether an object is a view by cuda.core of another package's array: it is of that package, and the exchange table of its class is not.
/// Needs the GIL.
[[nodiscard]] bool is_view_of_another(nanobind::handle object);

/// The name of the package that an object is of: that of a known array class it is derived from, else the first part of the module of
/// its type. Needs the GIL.
[[nodiscard]] std::string package_name_of(nanobind::handle object);

}  // namespace weir::python
