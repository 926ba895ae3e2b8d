// The draw of round t, a pure function of (seed, t): twin of randomness.py.
#pragma once

#include <cstdint>

namespace swapcal {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

inline uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

// `mixed` is mix64(seed + kGolden), computed once.
inline double uniform(uint64_t mixed, int64_t t) {
    return double(mix64(mixed + (uint64_t(t) + 1) * kGolden) >> 11) * 0x1p-53;
}

}  // namespace swapcal
