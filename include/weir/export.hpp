// Marks what the shared library offers. Layer: base.
#pragma once

#define WEIR_EXPORT __attribute__((visibility("default")))
