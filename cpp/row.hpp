// The non-zero entries of one context: twin of roles.Row.
#pragma once

#include <cstdint>

namespace swapcal {

struct Row {
    const int64_t *index;
    const double *value;
    int64_t n;
};

}  // namespace swapcal
