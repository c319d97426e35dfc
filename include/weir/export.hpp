// Marks the symbols that the shared library exports. Layer: base.
#pragma once

#define WEIR_EXPORT __attribute__((visibility("default")))
