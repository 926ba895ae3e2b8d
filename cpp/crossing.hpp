// Which values to play: twin of engine/values.py. Phi is evaluated only where the search looks.
#pragma once

#include <cmath>
#include <cstdint>

#include "values.hpp"

namespace swapcal {

// As in forecast.KINDS.
enum Kind { kZero, kPair, kLow, kHigh, kTrusted, kKinds };

struct Play {
    int64_t lower, upper;  // slots
    double p_lower, evidence_at;
    bool at_forecast;      // evidence is taken at the forecast itself
    Kind kind;
    double phi_lower, phi_upper;

    double point(double forecast) const { return at_forecast ? forecast : evidence_at; }
};

inline Play outright(int64_t slot, Kind kind) { return {slot, slot, 1.0, 0.0, true, kind, 0.0, 0.0}; }

template <class Phi>
Play pair(const Phi &phi, const Values &values, int64_t lower, double sign_lower, double sign_upper) {
    int64_t below = values.slot(lower), above = values.slot(lower + 1);
    double at_lower = phi.size(below, sign_lower), at_upper = phi.size(above, sign_upper);
    double size_lower = std::fabs(at_lower), size_upper = std::fabs(at_upper);
    double p_lower = size_upper / (size_lower + size_upper);
    double owed_lower, owed_upper;
    phi.owed(below, above, owed_lower, owed_upper);
    double heals_lower = p_lower * owed_lower, heals_upper = -(1.0 - p_lower) * owed_upper;
    double at = values.value(lower), next = values.value(lower + 1), point = 0.5 * (at + next);
    if (heals_lower > 0.0 && heals_lower >= heals_upper) {
        point = next;
    } else if (heals_upper > 0.0) {
        point = at;
    }
    values.answers[Values::kCut] = lower + 1;
    return {below, above, p_lower, point, false, kPair, at_lower, at_upper};
}

// From rank `start` against the evidence, one value after the other: many at once are fewer instructions, but took
// longer, as a processor guesses well how far it is and works on the next sums before it knows.
template <class Phi>
Play search(const Phi &phi, const Values &values, int64_t start) {
    int64_t last = values.n() - 1, i = start;
    double at = phi(values.slot(i));
    if (at == 0.0) return outright(values.slot(i), kZero);
    int64_t step = at > 0.0 ? -1 : 1;
    for (;;) {
        int64_t j = i + step;
        if (j < 0 || j > last) {
            bool low = j < 0;
            return {values.slot(i), values.slot(i), 1.0, low ? values.low : values.high, false, low ? kLow : kHigh, 0.0, 0.0};
        }
        double beyond = phi(values.slot(j));
        if (beyond == 0.0) return outright(values.slot(j), kZero);
        if ((beyond > 0.0) != (at > 0.0)) {
            return step > 0 ? pair(phi, values, i, at, beyond) : pair(phi, values, j, beyond, at);
        }
        i = j;
        at = beyond;
    }
}

}  // namespace swapcal
