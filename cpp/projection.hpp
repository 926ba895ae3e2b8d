// MsMwC's step of mirror descent: twin of paper.projection, operation by operation.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace swapcal {

// exp(r) - 1 for |r| up to (ln 2) / 2, from sums, products and one quotient, so that it has the same bits everywhere;
// those of a library's function depend on the library. See projection._expm1_near.
inline double expm1_near(double r) {
    double t = r * r;
    double c = t * 4.13813679705723846039e-08;
    c = (c + -1.65339022054652515390e-06) * t;
    c = (c + 6.61375632143793436117e-05) * t;
    c = (c + -2.77777777770155933842e-03) * t;
    c = (c + 1.66666666666666019037e-01) * t;
    c = r - c;
    return r + r * c / (2.0 - c);
}

inline double power_of_two(int64_t k) {
    int64_t bits = (k + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// x = k ln 2 + r.
struct Reduced {
    double r;
    int64_t k;

    explicit Reduced(double x) {
        // Adding 1.5 * 2^52 leaves the nearest whole number in the last bits, ties to even, as rint does.
        constexpr double kShift = 6755399441055744.0;
        double shifted = x * 1.44269504088896338700e+00 + kShift;
        double whole = shifted - kShift;
        r = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
        int64_t bits, zero;
        std::memcpy(&bits, &shifted, sizeof bits);
        std::memcpy(&zero, &kShift, sizeof zero);
        k = bits - zero;
    }
};

inline double within(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

inline double expm1_of(double x) {
    Reduced reduced(within(x, -700.0, 700.0));
    double power = power_of_two(reduced.k);
    return expm1_near(reduced.r) * power + (power - 1.0);
}

inline double exp_of(double x) {
    Reduced reduced(within(x, -800.0, 700.0));
    // In two steps, as the power may lie below the normal numbers; only the second one rounds.
    int64_t half = reduced.k >> 1;
    return (expm1_near(reduced.r) + 1.0) * power_of_two(half) * power_of_two(reduced.k - half);
}

// The sum of the terms, which are overwritten: long vectors are folded in half first, short ones added up in order.
inline double folded_sum(double *terms, int64_t n) {
    while (n > 256) {
        int64_t half = n / 2;
        const double *upper = terms + (n - half);
        for (int64_t i = 0; i < half; ++i) terms[i] += upper[i];
        n -= half;
    }
    double total = terms[0];
    for (int64_t i = 1; i < n; ++i) total += terms[i];
    return total;
}

struct Projection {
    const double *weights, *log_weights, *gradient, *rates;
    int64_t n;
    double floor;
    double *result, *log_result;  // out; until the end, the weights without a floor, and room
    double *room;                 // for n numbers
    double multiplier = 0.0;      // out
    int64_t iterations = 0;       // out

    void run() {
        double highest = gradient[0], lowest = gradient[0], fastest = rates[0];
        for (int64_t i = 1; i < n; ++i) {
            highest = gradient[i] > highest ? gradient[i] : highest;
            lowest = gradient[i] < lowest ? gradient[i] : lowest;
            fastest = rates[i] > fastest ? rates[i] : fastest;
        }
        for (int64_t i = 0; i < n; ++i) {
            room[i] = weights[i] * rates[i];
            log_result[i] = room[i] * gradient[i];
        }
        multiplier = -folded_sum(log_result, n) / folded_sum(room, n);
        double step = solve(0.0 - highest, 0.0 - lowest, fastest);
        finish(step, std::fabs(step) * fastest <= kLastStep);
    }

  private:
    static constexpr int64_t kMaxIterations = 60;
    static constexpr double kLastStep = 0x1p-26;

    // Finds the multiplier, and returns by how much its last step changed it; `result` is as it was before that.
    double solve(double low, double high, double fastest) {
        bool near = fastest * (high - low) <= 0.34;
        double step = 0.0;
        while (iterations < kMaxIterations) {
            ++iterations;
            if (near) {
                evaluate([](double x) { return expm1_near(x); });
            } else {
                evaluate([](double x) { return expm1_of(x); });
            }
            double excess = folded_sum(log_result, n) + 0.0;
            double slope = folded_sum(room, n);
            if (excess >= 0.0) {
                low = multiplier > low ? multiplier : low;
            } else {
                high = multiplier < high ? multiplier : high;
            }
            double proposal = slope > 0.0 ? multiplier + excess / slope : high;
            bool inside = low <= proposal && proposal <= high;
            if (!inside) proposal = 0.5 * (low + high);
            step = proposal - multiplier;
            multiplier = proposal;
            double size = std::fabs(step) * fastest;
            if (size <= 0x1p-53) break;
            if (inside && slope > 0.0 && size <= kLastStep && !at_floor()) break;
        }
        return step;
    }

    // The weights without a floor in `result`, the terms of F in `log_result`, those of its slope in `room`.
    template <class Expm1>
    void evaluate(Expm1 expm1) {
        // Copies in local variables, which no store through a pointer can change.
        const double *__restrict w = weights, *__restrict b = gradient, *__restrict eta = rates;
        double *__restrict u = result, *__restrict f = log_result, *__restrict g = room;
        double least = floor, lam = multiplier;
        int64_t end = n;
        // Two loops, because compilers turn the first into vector operations only while no choice is made in it.
        for (int64_t i = 0; i < end; ++i) {
            f[i] = expm1(-eta[i] * (b[i] + lam)) * w[i];
            u[i] = w[i] + f[i];
            g[i] = u[i] * eta[i];
        }
        for (int64_t i = 0; i < end; ++i) {
            double lowest = least - w[i], change = f[i], slope = g[i];
            f[i] = change > lowest ? change : lowest;
            g[i] = change > lowest ? slope : 0.0;
        }
    }

    // Whether a weight is so near the floor that the last step may take it there, or away.
    bool at_floor() const {
        if (floor == 0.0) return false;
        double least = floor, margin = 0x1p-24 * floor;
        int64_t found = 0;
        for (int64_t i = 0; i < n; ++i) found += std::fabs(result[i] - least) <= margin;
        return found > 0;
    }

    // The last step, and its rounding error spread over the free weights, so that none adds up over the rounds.
    void finish(double step, bool small) {
        const double *__restrict eta = rates, *__restrict b = gradient, *__restrict logs = log_weights;
        double *__restrict u = result, *__restrict log_u = log_result, *__restrict f = room;
        double least = floor, lam = multiplier, log_least = least > 0.0 ? std::log(least) : -HUGE_VAL;
        int64_t end = n, n_free = 0;
        for (int64_t i = 0; i < end; ++i) log_u[i] = logs[i] - eta[i] * (b[i] + lam);
        if (least > 0.0 && small) {
            for (int64_t i = 0; i < end; ++i) u[i] = u[i] * (1.0 - eta[i] * step);
        } else {
            for (int64_t i = 0; i < end; ++i) u[i] = exp_of(log_u[i]);
        }
        for (int64_t i = 0; i < end; ++i) {
            n_free += u[i] > least;
            f[i] = u[i] > least ? u[i] : 0.0;
        }
        double total = folded_sum(room, n);
        double ratio = 1.0, shift = 0.0;
        if (total > 0.0) {
            ratio = (1.0 - least * double(n - n_free)) / total;
            shift = std::log(ratio);
        }
        for (int64_t i = 0; i < end; ++i) {
            double logarithm = log_u[i] + shift, weight = u[i] * ratio;
            log_u[i] = (least == 0.0 || u[i] > least) && logarithm > log_least ? logarithm : log_least;
            u[i] = u[i] > least && weight > least ? weight : least;
        }
    }
};

}  // namespace swapcal
