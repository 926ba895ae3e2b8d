// How large V has been: twin of ledger.Scale.
#pragma once

#include <cstdint>

namespace swapcal {

struct Scale {
    int64_t *since;    // the first round that was drawn by a size
    double *sizes;
    int64_t *numbers;  // how many
    int64_t capacity;

    bool full() const { return numbers[0] == capacity; }
    double now() const { return sizes[numbers[0] - 1]; }

    // At the draw of round t.
    double at(int64_t t) const {
        int64_t k = numbers[0] - 1;
        while (k > 0 && since[k] > t) --k;
        return sizes[k];
    }

    // Doubles until it covers |V|; whether it had to. Before the first outcome nothing was weighed.
    bool cover(double size, int64_t issued, bool first) {
        double b = now();
        if (!(size > b)) return false;
        while (size > b) b *= 2.0;
        int64_t k = first ? 0 : numbers[0]++;
        since[k] = first ? 0 : issued;
        sizes[k] = b;
        return true;
    }
};

}  // namespace swapcal
