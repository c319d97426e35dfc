// The controls and queries of the fake PARDISO for tests. tests/support/fake_pardiso.hpp has a class over these.
#pragma once

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

/// How often the library was called for a phase: 11, 22, 33 or -1.
WEIR_FAKE_EXPORT unsigned long long weir_fake_pardiso_phases(int phase);
/// The nth call from now (1: the next) for the phase reports the error and does nothing else.
WEIR_FAKE_EXPORT void weir_fake_pardiso_fail(int phase, unsigned long long nth, int error);
/// Factorizations that were not released.
WEIR_FAKE_EXPORT unsigned long long weir_fake_pardiso_systems();
/// How often a program did what is not allowed: two calls for one system at the same time, another structure than in the analysis,
/// a phase before the one that it needs, elements out of order, or a matrix of a kind without its whole diagonal.
WEIR_FAKE_EXPORT unsigned long long weir_fake_pardiso_mistakes();
