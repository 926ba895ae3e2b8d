// The learning hint: twin of hints.RegressionState, bit for bit.
//
// Sums run from left to right over inputs (intercepts, base, features, context) and over experts. Needs
// -ffp-contract=off, no fast-math, and the C library that Python's `math` uses, for tanh and atanh.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "property.hpp"
#include "row.hpp"

namespace swapcal {

// Experts are innermost in memory: weight (input i, expert k) is at i * n_experts + k, so that loops over experts are
// contiguous and need no other order of sums to be fast.
struct Regression {
    // In front of the features: the intercept of rounds with a base, of rounds without one, and the base.
    static constexpr int64_t kOwn = 3;
    static constexpr double kCut = 5.0;
    static constexpr double kEdge = 1.0 - 2e-12;
    static constexpr double kCaution = 2.0;
    // Places in `totals`.
    enum Total : int64_t {
        kRounds, kNorms, kErrors, kSizes, kLags,
        kInputRounds, kBaseCount, kBaseMean, kBaseVariation, kEntries, kEntrySquares,
        kBound, kTotals
    };

    // Arrays that Python owns: see RegressionState.buffers.
    const double *rates;                        // n_experts
    double *dense;                              // (kOwn + n_features) * n_experts
    double *sparse;                             // n_inputs * n_experts
    double *mean, *variation, *inverse;         // n_features
    double *regrets, *squares, *weights;        // n_experts
    double *totals;                             // kTotals

    int64_t n_experts, n_identity, n_features;
    double low, high, half, middle;             // of the property's domain
    const Property *property;

    // Scratch, of `scratch_size` numbers in all.
    double *units;                              // n_experts
    double *apart;                              // n_experts: how far the mixture was above each, as it was said
    double *steps;                              // n_experts
    double *inputs;                             // kOwn + n_features + n_inputs

    // The round that `forecast` saw last, for `learn`; row and features are the caller's and must still be there.
    Row row;
    const double *features;
    bool has_base;
    double odds, row_squares, combined;

    static int64_t scratch_size(int64_t n_experts, int64_t n_features, int64_t n_inputs) {
        return 3 * n_experts + kOwn + n_features + n_inputs;
    }

    void use_scratch(double *buffer) {
        units = buffer;
        steps = units + n_experts;
        apart = steps + n_experts;
        inputs = apart + n_experts;
    }

    void set_domain(double from, double to) {
        low = from;
        high = to;
        half = 0.5 * (to - from);
        middle = from + half;
    }

    // The hint for this round, from arguments that are finite and in range. `features` may be null if there are none.
    double forecast(const Row &context, const double *extra, bool based, double base) {
        row = context;
        features = extra;
        has_base = based;
        double unit = 0.0;
        odds = 0.0;
        if (based) {
            unit = cut((base - middle) / half, 1.0);
            odds = std::atanh(cut(unit, kEdge));
        }
        scale_inputs();
        linear_parts();
        for (int64_t k = 0; k < n_identity; ++k) units[k] = cut(unit + units[k], 1.0);
        // An expert that has learned nothing gives the base itself, without the rounding errors of tanh and atanh.
        for (int64_t k = n_identity; k < n_experts; ++k) {
            units[k] = units[k] != 0.0 ? std::tanh(odds + units[k]) : unit;
        }
        combined = weights[0] * units[0];
        for (int64_t k = 1; k < n_experts; ++k) combined += weights[k] * units[k];
        return value(combined);
    }

    // Twin of mixture.packed: how far the mixture is above each expert, in two bytes each.
    void scores(uint16_t *packed) const {
        for (int64_t k = 0; k < n_experts; ++k) packed[k] = score(combined - units[k]);
    }

    // The upper half of a 32-bit float, rounded to even.
    static uint16_t score(double difference) {
        float single = float(difference);
        uint32_t bits;
        std::memcpy(&bits, &single, 4);
        return uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
    }

    static double unpacked(uint16_t score) {
        uint32_t bits = uint32_t(score) << 16;
        float single;
        std::memcpy(&single, &bits, 4);
        return double(single);
    }

    // The outcome of the round that `forecast` saw last, if nothing was learned since.
    void learn_now(double y) {
        for (int64_t k = 0; k < n_experts; ++k) apart[k] = unpacked(score(combined - units[k]));
        learn(y, value(combined), 0);
    }

    // With `apart` as it was said.
    void learn(double y, double forecast, int64_t lag) {
        double v = property->identification(forecast, y);
        for (int64_t k = 0; k < n_experts; ++k) {
            steps[k] = property->identification(middle + half * units[k], y) * rates[k];
        }
        totals[kRounds] += 1.0;
        totals[kLags] += double(lag);
        learn_mixture(v);
        learn_inputs();
        int64_t n = n_dense() + row.n;
        double norm = inputs[0] * inputs[0];
        for (int64_t i = 1; i < n; ++i) norm += inputs[i] * inputs[i];
        totals[kNorms] += norm;
        totals[kErrors] += std::fabs(y - forecast) / half;
        totals[kSizes] += std::fabs(v);
        double mean_norm = totals[kNorms] / totals[kRounds];
        double scale = totals[kSizes] > 0.0 ? totals[kErrors] / totals[kSizes] : 2.0;
        double factor = scale / (mean_norm > norm ? mean_norm : norm);
        for (int64_t k = 0; k < n_experts; ++k) steps[k] *= factor;
        for (int64_t i = 0; i < n_dense(); ++i) descend(dense + i * n_experts, inputs[i]);
        const double *entries = inputs + n_dense();
        for (int64_t j = 0; j < row.n; ++j) descend(sparse + row.index[j] * n_experts, entries[j]);
    }

    // An outcome that comes late: the other arguments are those of its forecast, and what was said then.
    void update(const Row &context, const double *extra, bool based, double base, double y, double said,
                const uint16_t *packed, int64_t lag) {
        forecast(context, extra, based, base);
        for (int64_t k = 0; k < n_experts; ++k) apart[k] = unpacked(packed[k]);
        learn(y, said, lag);
    }

  private:
    int64_t n_dense() const { return kOwn + n_features; }

    static double cut(double x, double limit) { return x < -limit ? -limit : x > limit ? limit : x; }

    // In the property's units; rounding must not carry it past an end of the domain.
    double value(double unit) const {
        double p = middle + half * unit;
        p = low > p ? low : p;
        return high < p ? high : p;
    }

    // Entries so tiny that n / total overflows have a finite root all the same.
    static double root_ratio(double n, double total) {
        if (!(total > 0.0)) return 0.0;
        return std::isinf(n / total) ? std::sqrt(n) / std::sqrt(total) : std::sqrt(n / total);
    }

    // Twin of Inputs.scaled.
    void scale_inputs() {
        double spread = totals[kBaseCount] > 0.0 ? totals[kBaseVariation] / totals[kBaseCount] : 0.0;
        double scaled = spread > 0.0 ? (odds - totals[kBaseMean]) / std::sqrt(spread) : 0.0;
        inputs[0] = has_base ? 1.0 : 0.0;
        inputs[1] = has_base ? 0.0 : 1.0;
        inputs[2] = has_base ? cut(scaled, kCut) : 0.0;
        for (int64_t i = 0; i < n_features; ++i) inputs[kOwn + i] = cut((features[i] - mean[i]) * inverse[i], kCut);
        row_squares = 0.0;
        for (int64_t j = 0; j < row.n; ++j) row_squares += row.value[j] * row.value[j];
        double total = totals[kEntrySquares] + row_squares;
        double factor = root_ratio(totals[kEntries] + double(row.n), total);
        double *entries = inputs + n_dense();
        for (int64_t j = 0; j < row.n; ++j) entries[j] = row.value[j] * factor;
    }

    // The experts' linear functions of the inputs, in `units`.
    void linear_parts() {
        double *__restrict z = units;
        for (int64_t k = 0; k < n_experts; ++k) z[k] = dense[k] * inputs[0];
        for (int64_t i = 1; i < n_dense(); ++i) add(dense + i * n_experts, inputs[i]);
        const double *entries = inputs + n_dense();
        for (int64_t j = 0; j < row.n; ++j) add(sparse + row.index[j] * n_experts, entries[j]);
    }

    void add(const double *__restrict w, double input) {
        double *__restrict z = units;
        for (int64_t k = 0; k < n_experts; ++k) z[k] += w[k] * input;
    }

    void descend(double *__restrict w, double input) const {
        const double *__restrict step = steps;
        for (int64_t k = 0; k < n_experts; ++k) w[k] -= input * step[k];
    }

    // Twin of Mixture.learn.
    void learn_mixture(double v) {
        double *__restrict r = regrets, *__restrict s = squares, *__restrict w = weights;
        double bound = totals[kBound];
        for (int64_t k = 0; k < n_experts; ++k) {
            double regret = v * apart[k], square = regret * regret;
            r[k] += regret;
            s[k] += square;
            bound = square > bound ? square : bound;
        }
        totals[kBound] = bound;
        double lags = totals[kLags], rounds = totals[kRounds];
        double share = lags > 0.0 ? kCaution * kCaution * (lags / rounds) / rounds : 0.0;
        double *__restrict ahead = apart;  // no longer needed
        for (int64_t k = 0; k < n_experts; ++k) ahead[k] = r[k];
        if (share > 0.0) {
            for (int64_t k = 0; k < n_experts; ++k) ahead[k] -= std::sqrt(share * s[k]);
            ahead[0] = r[0];
        }
        int64_t best = 0;
        for (int64_t k = 1; k < n_experts; ++k) best = ahead[k] > ahead[best] ? k : best;
        if (ahead[best] > 0.0 && bound > 0.0) {
            for (int64_t k = 0; k < n_experts; ++k) w[k] = (ahead[k] > 0.0 ? ahead[k] : 0.0) / (s[k] + bound);
            double total = w[0];
            for (int64_t k = 1; k < n_experts; ++k) total += w[k];
            if (total > 0.0) {
                for (int64_t k = 0; k < n_experts; ++k) w[k] /= total;
                return;
            }
        }
        for (int64_t k = 0; k < n_experts; ++k) w[k] = 0.0;
        w[lags > 0.0 ? 0 : best] = 1.0;
    }

    // Twin of Inputs.learn.
    void learn_inputs() {
        totals[kInputRounds] += 1.0;
        if (has_base) {
            totals[kBaseCount] += 1.0;
            double change = odds - totals[kBaseMean];
            totals[kBaseMean] += change / totals[kBaseCount];
            totals[kBaseVariation] += change * (odds - totals[kBaseMean]);
        }
        totals[kEntries] += double(row.n);
        totals[kEntrySquares] += row_squares;
        double rounds = totals[kInputRounds];
        for (int64_t i = 0; i < n_features; ++i) {
            double change = features[i] - mean[i];
            mean[i] += change / rounds;
            variation[i] += change * (features[i] - mean[i]);
            double spread = std::sqrt(variation[i] / rounds);
            inverse[i] = spread > 0.0 ? 1.0 / spread : 0.0;
        }
    }
};

}  // namespace swapcal
