// The values that can be forecast: twin of engine/values.py.
#pragma once

#include <cstdint>

namespace swapcal {

struct Values {
    double low, high;
    double *by_slot;    // in order of birth: the place of a value here is its slot
    int64_t *order;     // slots in increasing order of their values
    double *ranked;     // the values in increasing order
    int64_t *numbers;   // how many
    double *gaps;       // kGap for each rank and one more
    int64_t capacity;
    enum Gap { kRounds, kRounding, kNoise, kCost, kLost, kGap };
    // Who asks where a number lies, and the last answers: the next one is most often the same.
    enum Asker { kHint, kStart, kBelow, kAbove, kCut, kOwn, kAskers };
    mutable int64_t answers[kAskers] = {};

    int64_t n() const { return numbers[0]; }
    bool full() const { return numbers[0] >= capacity - 1; }  // an outcome may add two
    int64_t slot(int64_t rank) const { return order[rank]; }
    double value(int64_t rank) const { return ranked[rank]; }

    // The first rank whose value is at least x.
    int64_t above(double x, Asker asker) const {
        int64_t &answer = answers[asker], left = n();
        if (answer <= left && (answer == left || ranked[answer] >= x) && (answer == 0 || ranked[answer - 1] < x)) return answer;
        if (!left) return 0;
        // Without a branch on what is found: nobody can guess it.
        const double *first = ranked;
        while (left > 1) {
            int64_t half = left / 2;
            first += half & -int64_t(first[half - 1] < x);  // a condition would become a branch
            left -= half;
        }
        return answer = first - ranked + (*first < x);
    }

    int64_t nearest(double x, Asker asker) const {
        int64_t i = above(x, asker);
        return i == n() || (i > 0 && x - value(i - 1) <= value(i) - x) ? i - 1 : i;
    }

    // Nothing to divide by in most ranges.
    double unit(double x) const { return high - low == 1.0 ? x - low : (x - low) / (high - low); }

    // The slot of the value x; -1 if it is not one.
    int64_t find(double x) const {
        int64_t i = above(x, kOwn);
        return i < n() && value(i) == x ? slot(i) : -1;
    }

    int64_t add(double x) {
        int64_t i = above(x, kOwn), count = n();
        by_slot[count] = x;
        for (int64_t k = count; k > i; --k) order[k] = order[k - 1], ranked[k] = ranked[k - 1];
        order[i] = count;
        ranked[i] = x;
        for (int64_t k = kGap * (count + 2) - 1; k >= kGap * (i + 1); --k) gaps[k] = gaps[k - kGap];
        for (int64_t k = kGap * i; k < kGap * (i + 2); ++k) gaps[k] = 0.0;
        numbers[0] = count + 1;
        return count;
    }

    // The mid-points of m equal bins.
    void spread(int64_t m) {
        for (int64_t i = 0; i < m; ++i) add(low + (high - low) * (double(2 * i + 1) / double(2 * m)));
    }
};

}  // namespace swapcal
