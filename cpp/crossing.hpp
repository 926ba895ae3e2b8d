// Which bins to play: twin of crossing.py. Phi is evaluated only where the search looks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "grid.hpp"

namespace swapcal {

struct Play {
    int64_t lower, upper;
    double p_lower;
    double border;
    bool at_border;

    double evidence_at(double forecast) const { return at_border ? border : forecast; }
};

inline Play outright(int64_t bin) { return {bin, bin, 1.0, 0.0, false}; }

template <class Phi>
Play crossing(const Phi &phi, const Grid &grid, int64_t lower, double at_lower, double at_upper, bool monotone) {
    double size_lower = std::fabs(phi.size(lower, at_lower)), size_upper = std::fabs(phi.size(lower + 1, at_upper));
    double p_lower = size_upper / (size_lower + size_upper);
    if (at_lower > 0.0 && monotone) return {lower, lower + 1, p_lower, 0.0, false};
    return {lower, lower + 1, p_lower, grid.border(lower + 1), true};
}

inline Play end(const Grid &grid, bool positive) {
    int64_t i = positive ? 0 : grid.n - 1;
    return {i, i, 1.0, positive ? grid.low : grid.high, true};
}

template <class Phi>
Play narrow(const Phi &phi, const Grid &grid, int64_t left, int64_t right, double at_left, double at_right,
            bool monotone) {
    while (right - left > 1) {
        int64_t middle = (left + right) / 2;
        // One of these is next, whichever sign comes out.
        phi.soon((left + middle) / 2);
        phi.soon((middle + right) / 2);
        double at_middle = phi(middle);
        if (at_middle == 0.0) return outright(middle);
        if ((at_middle > 0.0) == (at_left > 0.0)) {
            left = middle, at_left = at_middle;
        } else {
            right = middle, at_right = at_middle;
        }
    }
    return crossing(phi, grid, left, at_left, at_right, monotone);
}

template <class Phi>
Play bisect(const Phi &phi, const Grid &grid, bool monotone) {
    int64_t last = grid.n - 1;
    double at_first = phi(0);
    if (at_first == 0.0) return outright(0);
    if (at_first > 0.0) return end(grid, true);
    double at_last = last ? phi(last) : at_first;
    if (at_last == 0.0) return outright(last);
    if (at_last < 0.0) return end(grid, false);
    return narrow(phi, grid, 0, last, at_first, at_last, monotone);
}

template <class Phi>
Play bracket(const Phi &phi, const Grid &grid, double hint, bool monotone, int64_t linear_steps = 4) {
    int64_t near = grid.bin(hint);
    int64_t left = hint >= grid.midpoint(near) ? near : near - 1;
    int64_t right = std::min(left + 1, grid.n - 1);
    left = std::max(left, int64_t(0));
    double at_left = phi(left);
    double at_right = right != left ? phi(right) : at_left;
    if (at_left == 0.0 && at_right == 0.0) {
        return outright(hint - grid.midpoint(left) <= grid.midpoint(right) - hint ? left : right);
    }
    if (at_left == 0.0 || at_right == 0.0) return outright(at_left == 0.0 ? left : right);
    bool positive = at_left > 0.0;
    if (positive != (at_right > 0.0)) return crossing(phi, grid, left, at_left, at_right, monotone);
    int64_t step = 1, taken = 0;
    while (left > 0 || right < grid.n - 1) {
        if ((positive && left == 0) || (!positive && right == grid.n - 1)) break;
        if (left > 0) {
            int64_t further = std::max(left - step, int64_t(0));
            double at_further = phi(further);
            if (at_further == 0.0) return outright(further);
            if ((at_further > 0.0) != positive) return narrow(phi, grid, further, left, at_further, at_left, monotone);
            left = further, at_left = at_further;
        }
        if (right < grid.n - 1) {
            int64_t further = std::min(right + step, grid.n - 1);
            double at_further = phi(further);
            if (at_further == 0.0) return outright(further);
            if ((at_further > 0.0) != positive) {
                return narrow(phi, grid, right, further, at_right, at_further, monotone);
            }
            right = further, at_right = at_further;
        }
        if (++taken >= linear_steps) step *= 2;
    }
    return end(grid, positive);
}

}  // namespace swapcal
