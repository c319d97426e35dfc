#pragma once

#include "weir/array.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir::exchange {

/// Whether the program itself asks for an order, or Weir finds that it is needed, which `manual` leaves out (rule O5).
enum class order_asked_by : bool { weir, program };

/// Enqueues an operation that does nothing: what `to` gets later comes after what conflicts with it. Throws as `hand_over`.
void enter(const array& x, const stream_ref& to, bool writes, order_asked_by by, source_location where);

}  // namespace weir::exchange
