// Everything that Weir offers to C++ programs. Layer: umbrella.
#pragma once

#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/check.hpp"
#include "weir/completion.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/fft.hpp"
#include "weir/launch.hpp"
#include "weir/memory.hpp"
#include "weir/ordering.hpp"
#include "weir/stream.hpp"
#include "weir/testing.hpp"
#include "weir/trace.hpp"
