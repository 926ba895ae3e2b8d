// How a finite class weighs its evidence: twins of potentials/*.py, operation for operation.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exponential.hpp"

namespace swapcal {

constexpr double kTiny = std::numeric_limits<double>::min();

// The default potential.
inline double weight_adanormalhedge(double s, double c) {
    double inverse = 1.0 / (3.0 * (c + 1.0));
    return safe_exp((s * s + 1.0) * inverse) * short_sinh(2.0 * s * inverse);
}

// Many entries at a time.
SWAPCAL_VECTORIZED
static void weigh_adanormalhedge(const double *__restrict s, const double *__restrict c, double *__restrict w, int64_t n) {
    for (int64_t k = 0; k < n; ++k) w[k] = weight_adanormalhedge(s[k], c[k]);
}

// And the gains x v before that, of a row whose entries are all there; `in` is 1 over the size of V.
SWAPCAL_VECTORIZED
static void learn_adanormalhedge(double *__restrict s, double *__restrict c, double *__restrict w,
                                 const double *__restrict x, double v, double in, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        double g = x[k] * v;
        s[k] += g;
        c[k] += std::fabs(g);
        w[k] = weight_adanormalhedge(s[k] * in, c[k] * in);
    }
}

struct AdaNormalHedge {
    static constexpr bool scaled = true;
    static constexpr bool exponential = true;
    static constexpr bool together = false;

    double spread(double g) const { return std::fabs(g); }

    void weigh(const double *s, const double *c, double *w, int64_t n) const { weigh_adanormalhedge(s, c, w, n); }

    void learn(double *s, double *c, double *w, const double *x, double v, double in, int64_t n) const {
        learn_adanormalhedge(s, c, w, x, v, in, n);
    }

    double level(double s, double c) const { return s * s / (3.0 * (c > kTiny ? c : kTiny)); }
};

struct Exponential {
    static constexpr bool scaled = false;
    static constexpr bool exponential = true;
    static constexpr bool together = false;

    const double *rates;  // pairs (eta, psi(eta))
    int64_t n_rates;

    double spread(double g) const { return g * g; }

    double weight(double s, double c) const {
        double r = std::fabs(s), total = 0.0;
        for (int64_t k = 0; k < n_rates; ++k) {
            double eta = rates[2 * k], psi = rates[2 * k + 1];
            total += eta * (safe_exp(eta * r - psi * c) - safe_exp(-eta * r - psi * c));
        }
        return std::copysign(total, s);
    }

    void weigh(const double *s, const double *c, double *w, int64_t n) const {
        for (int64_t k = 0; k < n; ++k) w[k] = weight(s[k], c[k]);
    }

    double level(double s, double c) const { return s * s / (2.0 * (c > kTiny ? c : kTiny)); }
};

struct Squint {
    static constexpr bool scaled = false;
    static constexpr bool exponential = true;
    static constexpr bool together = false;

    const double *nodes;  // pairs (eta, weight) of the quadrature rule on [0, 1/2]
    int64_t n_nodes;
    double sqrt_pi;

    double spread(double g) const { return g * g; }

    double scaled_erfc(double z) const {
        if (z < 10.0) return std::exp(z * z) * std::erfc(z);
        double q = 1.0 / (z * z);
        return (1.0 - q * (0.5 - q * (0.75 - q * (1.875 - q * 6.5625)))) / (sqrt_pi * z);
    }

    double integral(double s, double c) const {
        double root = std::sqrt(c);
        if (root < 0.5 && std::fabs(s) < 20.0) {
            double total = 0.0;
            for (int64_t k = 0; k < n_nodes; ++k) {
                double eta = nodes[2 * k];
                total += nodes[2 * k + 1] * std::exp(eta * s - eta * eta * c);
            }
            return total;
        }
        if (root < 1e-3) return 0.5 * (safe_exp(0.5 * s) - 1.0) / (0.5 * s);
        double a = s / (2.0 * root), b = a - 0.5 * root, end = 0.5 * s - 0.25 * c, value;
        if (b >= 0.0) {
            value = safe_exp(end) * scaled_erfc(b) - scaled_erfc(a);
        } else if (a >= 0.0) {
            value = safe_exp(a * a) * (std::erf(a) - std::erf(b));
        } else {
            value = scaled_erfc(-a) - safe_exp(end) * scaled_erfc(-b);
        }
        return sqrt_pi / (2.0 * root) * value;
    }

    double weight(double s, double c) const {
        if (s == 0.0) return 0.0;
        double r = std::fabs(s);
        return std::copysign(integral(r, c) - integral(-r, c), s);
    }

    void weigh(const double *s, const double *c, double *w, int64_t n) const {
        for (int64_t k = 0; k < n; ++k) w[k] = weight(s[k], c[k]);
    }

    double level(double s, double c) const { return s * s / (4.0 * (c > kTiny ? c : kTiny)); }
};

struct PNorm {
    static constexpr bool scaled = false;
    static constexpr bool exponential = false;
    static constexpr bool together = true;

    double p;

    double spread(double) const { return 0.0; }
    void weigh(const double *, const double *, double *, int64_t) const {}  // `row_weights` does it
    double level(double, double) const { return std::numeric_limits<double>::infinity(); }

    double norm(const double *sums, int64_t n) const {
        double largest = 0.0, total = 0.0;
        for (int64_t j = 0; j < n; ++j) largest = std::fabs(sums[j]) > largest ? std::fabs(sums[j]) : largest;
        if (largest == 0.0) return 0.0;
        for (int64_t j = 0; j < n; ++j) total += std::pow(std::fabs(sums[j]) / largest, p);
        return largest * std::pow(total, 1.0 / p);
    }

    void row_weights(const double *sums, double *weights, int64_t n, double count) const {
        double largest = 0.0;
        for (int64_t j = 0; j < n; ++j) largest = std::fabs(sums[j]) > largest ? std::fabs(sums[j]) : largest;
        if (largest == 0.0) {
            for (int64_t j = 0; j < n; ++j) weights[j] = 0.0;
            return;
        }
        double total = 0.0;
        for (int64_t j = 0; j < n; ++j) total += std::pow(std::fabs(sums[j]) / largest, p);
        double factor = largest * std::pow(total, (2.0 - p) / p) / (count + 1.0);
        for (int64_t j = 0; j < n; ++j) {
            weights[j] = std::copysign(factor * std::pow(std::fabs(sums[j]) / largest, p - 1.0), sums[j]);
        }
    }
};

}  // namespace swapcal
