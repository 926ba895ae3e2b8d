// By which an open round is known: 32 bits of all that its update will use. Twin of marks.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "randomness.hpp"
#include "row.hpp"

namespace swapcal {

class Mark {
  public:
    void number(double x) { word(folded(x)); }
    void nothing() { word(1); }

    void row(const Row &row) {
        for (int64_t k = 0; k < row.n; ++k) word(uint64_t(row.index[k]) * kGolden + folded(row.value[k]));
    }

    uint32_t result() const { return std::max(uint32_t(mix64(total_) >> 32), uint32_t(2)); }

  private:
    uint64_t total_ = 0;

    void word(uint64_t word) { total_ = total_ * kGolden + word; }

    // Adding zero makes minus zero zero; the lower half of most numbers is empty.
    static uint64_t folded(double x) {
        uint64_t bits;
        x += 0.0;
        std::memcpy(&bits, &x, 8);
        return bits ^ (bits >> 32);
    }
};

}  // namespace swapcal
