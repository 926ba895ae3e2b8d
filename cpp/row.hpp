// The non-zero entries of one context: twin of roles.Row.
#pragma once

#include <cstdint>

namespace swapcal {

struct Row {
    const int64_t *index;
    const double *value;
    int64_t n;
    int64_t whole = 0;  // so many entries come first whose positions are 0, 1, 2 ...: those need no look-up

    // `f(k, position)` for every entry, from left to right.
    template <class F>
    void each(const F &f) const {
        for (int64_t k = 0; k < whole; ++k) f(k, k);
        for (int64_t k = whole; k < n; ++k) f(k, index[k]);
    }
};

}  // namespace swapcal
