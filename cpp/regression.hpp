// The learning hint: twin of hints.RegressionState, bit for bit.
//
// Sums run from left to right over inputs (intercepts, base, features, context) and over experts. Needs
// -ffp-contract=off, no fast-math, and the C library that Python's `math` uses, for exp and log.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "property.hpp"
#include "row.hpp"

namespace swapcal {

// Of the experts that are not full filters the weights are innermost in memory: weight (input i, expert k) is at
// i * kOthers + k, so that loops over experts are contiguous and need no other order of sums to be fast.
struct Regression {
    // In front of the features: the intercept of rounds with a base, of rounds without one, and the base.
    static constexpr int64_t kOwn = 3;
    static constexpr double kCut = 5.0, kEdge = 1e-9, kFlat = 1e-6, kLeastSlope = 0.25, kWarmUp = 8.0;
    // Experts beside the raw model, in their order.
    static constexpr int64_t kFull = 2, kDrifting = 4, kSteps = 4, kSlow = 2;
    static constexpr int64_t kFilters = kFull + kDrifting, kOthers = kDrifting + kSteps, kLinear = kFull + kOthers;
    static constexpr int64_t n_experts = 1 + kLinear;
    static constexpr double kPriors[kFull] = {1.0, 0.03};
    static constexpr double kOwnDrifts[kDrifting] = {1e-5, 1e-3, 1e-3, 1e-1};
    static constexpr double kDrifts[kDrifting] = {1e-5, 1e-3, 1e-6, 1e-6};
    static constexpr double kRates[kSteps] = {1.0, 0.16, 0.0256, 0.004};
    // Places in `totals`.
    enum Total : int64_t {
        kRounds, kNorms, kErrors, kSizes, kSquares, kSlopes, kUnit, kEnds, kUsed, kCenter, kSpread,
        kInputRounds, kBaseCount, kBaseMean, kBaseVariation, kEntries, kEntrySquares,
        kBound, kTotals
    };

    // Arrays that Python owns: see RegressionState.buffers.
    double *means, *matrices, *rest;            // kFull * n; kFull * n_full * n_full, upper triangles; the others
    double *slopes, *variances;                 // n * kOthers; n * kDrifting
    double *mean, *variation, *inverse;         // n_features
    double *regrets, *squares, *weights;        // n_experts
    double *totals;                             // kTotals

    int64_t n, n_full, n_features;              // weights; those with covariances; features
    bool tells;                                 // V tells the outcome
    double low, high, width;                    // of the property's domain
    const Property *property;

    // Scratch, of `scratch_size` numbers in all.
    double *inputs;                             // n
    double *reach;                              // n_full
    double units[n_experts];                    // the model's forecast and the experts', in units of the range
    double apart[n_experts];                    // how far the mixture was above each, as it was said

    // The round that `forecast` saw last, for `learn`; row and features are the caller's and must still be there.
    Row row;
    const double *features;
    bool has_base;
    double odds, row_squares, combined;

    static int64_t scratch_size(int64_t n, int64_t n_full) { return n + n_full; }

    void use_scratch(double *buffer) {
        inputs = buffer;
        reach = inputs + n;
    }

    void set_domain(double from, double to) {
        low = from;
        high = to;
        width = to - from;
    }

    // The hint for this round, from arguments that are finite and in range. `features` may be null if there are none.
    double forecast(const Row &context, const double *extra, bool based, double base) {
        row = context;
        features = extra;
        has_base = based;
        double unit = based ? cut((base - low) / width, 0.0, 1.0) : totals[kCenter];
        double inside = cut(unit, kEdge, 1.0 - kEdge);
        odds = std::log(inside / (1.0 - inside));
        scale_inputs();
        double z[kLinear];
        linear_parts(z);
        bool logistic = totals[kUnit] > 0.0 && totals[kEnds] > 0.0;
        units[0] = unit;
        combined = weights[0] * unit;
        for (int64_t k = 0; k < kLinear; ++k) {
            units[1 + k] = said(unit, z[k], logistic);
            combined += weights[1 + k] * units[1 + k];
        }
        return value(combined);
    }

    // Twin of regression.packed: how far the mixture is above each expert, in two bytes each.
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
        learn(y, value(combined));
    }

    // An outcome that comes late: the other arguments are those of its forecast, and what was said then.
    void update(const Row &context, const double *extra, bool based, double base, double y, double said,
                const uint16_t *packed) {
        forecast(context, extra, based, base);
        for (int64_t k = 0; k < n_experts; ++k) apart[k] = unpacked(packed[k]);
        learn(y, said);
    }

  private:
    int64_t n_dense() const { return kOwn + n_features; }

    // The weight of an input.
    int64_t position(int64_t i) const { return i < n_dense() ? i : n_dense() + row.index[i - n_dense()]; }

    static double cut(double x, double from, double to) {
        x = from > x ? from : x;
        return to < x ? to : x;
    }

    double said(double unit, double part, bool logistic) const {
        if (part == 0.0) return unit;
        return logistic ? 1.0 / (1.0 + std::exp(-(odds + part))) : cut(unit + part, 0.0, 1.0);
    }

    double v_at(double unit, double y) const { return property->identification(low + width * unit, y); }

    // In the property's units; rounding must not carry it past an end of the domain.
    double value(double unit) const { return cut(low + width * unit, low, high); }

    // With `apart` as it was said.
    void learn(double y, double forecast) {
        double v = property->identification(forecast, y), gradients[kLinear];
        for (int64_t k = 0; k < kLinear; ++k) gradients[k] = v_at(units[1 + k], y);
        double v_center = v_at(totals[kCenter], y), rounds = totals[kRounds] + 1.0;
        totals[kRounds] = rounds;
        totals[kErrors] += std::fabs((property->kind == PropertyKind::Moment ? property->raised(y) : y) - forecast) / width;
        totals[kSizes] += std::fabs(v);
        totals[kSquares] += v * v;
        double far = totals[kErrors] / rounds, unit = (forecast - low) / width;
        double from = unit - far < 0.0 ? 0.0 : unit - far, to = unit + far > 1.0 ? 1.0 : unit + far;
        if (to > from) {
            double lower = v_at(from, y), upper = v_at(to, y);
            totals[kSlopes] += (upper - lower) / (to - from);
        }
        learn_mixture(v);
        learn_inputs();
        int64_t m = n_dense() + row.n, used = 1 + position(m - 1);
        double norm = inputs[0] * inputs[0];
        for (int64_t i = 1; i < m; ++i) norm += inputs[i] * inputs[i];
        totals[kNorms] += norm;
        if (double(used) > totals[kUsed]) totals[kUsed] = double(used);
        double noise = totals[kSquares] / rounds, slope = 1.0;
        if (far > 0.0) {
            double mean_slope = totals[kSlopes] / rounds, least = kLeastSlope * (totals[kSizes] / rounds) / far;
            slope = least > mean_slope ? least : mean_slope;
        }
        if (noise > 0.0) learn_center(v_center, slope, noise);
        if (totals[kUnit] == 0.0) {
            warm_up(y, rounds, far);
        } else if (noise > 0.0) {
            double mean_norm = totals[kNorms] / rounds;
            double scale = totals[kSizes] > 0.0 ? totals[kErrors] / totals[kSizes] : 1.0;
            learn_experts(gradients, slope, noise, scale / (mean_norm > norm ? mean_norm : norm), m);
        }
    }

    void learn_center(double v, double slope, double noise) {
        double spread = totals[kSpread], share = 1.0 / (1.0 + slope * slope / noise * spread);
        totals[kCenter] = cut(totals[kCenter] - share * (v * slope / noise) * spread, 0.0, 1.0);
        totals[kSpread] = spread - share * (slope * slope / noise) * (spread * spread);
    }

    void warm_up(double y, double rounds, double far) {
        if (!tells || !(y == property->low || y == property->high)) totals[kEnds] = 0.0;
        if (rounds < kWarmUp) return;
        double unit = far * far;
        totals[kUnit] = totals[kEnds] > 0.0 ? 1.0 : unit < 1e-12 ? 1e-12 : unit;
    }

    void learn_experts(const double *gradients, double slope, double noise, double step, int64_t m) {
        double unit = totals[kUnit], curves[kFilters], errors[kFilters];
        bool logistic = totals[kEnds] > 0.0;
        for (int64_t k = 0; k < kFilters; ++k) {
            double p = units[1 + k], curve = logistic ? p * (1.0 - p) : slope * slope / noise;
            curves[k] = logistic && curve < kFlat ? kFlat : curve;
            errors[k] = logistic ? gradients[k] : gradients[k] * (slope / noise);
        }
        if (logistic) step = 4.0 * step;
        for (int64_t f = 0; f < kFull; ++f) learn_full(f, unit * kPriors[f], curves[f], errors[f], m);

        double shares[kDrifting] = {}, steps[kSteps];
        for (int64_t i = 0; i < m; ++i) {
            double *__restrict p = variances + position(i) * kDrifting, x = inputs[i];
            bool fresh = p[0] == 0.0;
            for (int64_t k = 0; k < kDrifting; ++k) {
                double before = fresh ? unit : p[k];
                p[k] = before + (i < kOwn - 1 ? kOwnDrifts[k] * unit * x : kDrifts[k] * unit);
                double total = p[k] * x * x;
                shares[k] = i ? shares[k] + total : total;
            }
        }
        double moves[kDrifting], falls[kDrifting];
        for (int64_t k = 0; k < kDrifting; ++k) {
            double share = 1.0 / (1.0 + curves[kFull + k] * shares[k]);
            moves[k] = share * errors[kFull + k];
            falls[k] = share * curves[kFull + k];
        }
        for (int64_t k = 0; k < kSteps; ++k) steps[k] = gradients[kFilters + k] * (kRates[k] * step);
        for (int64_t i = 0; i < m; ++i) {
            double *__restrict p = variances + position(i) * kDrifting, *__restrict w = slopes + position(i) * kOthers;
            double x = inputs[i];
            for (int64_t k = 0; k < kDrifting; ++k) {
                double far = p[k] * x;
                w[k] -= moves[k] * far;
                p[k] -= falls[k] * (far * far);
            }
            for (int64_t k = 0; k < kSteps; ++k) w[kDrifting + k] -= x * steps[k];
        }
    }

    // The first weights have covariances, of which the upper triangle is kept; the others have a variance each.
    void learn_full(int64_t f, double prior, double curve, double error, int64_t m) {
        double *matrix = matrices + f * n_full * n_full, *far = rest + f * (n - n_full), *w = means + f * n;
        int64_t used = int64_t(totals[kUsed]) < n_full ? int64_t(totals[kUsed]) : n_full, inside = 0;
        for (; inside < m && position(inside) < used; ++inside) {
            double &variance = matrix[position(inside) * (n_full + 1)];
            if (variance == 0.0) variance = prior;
        }
        for (int64_t i = 0; i < inside; ++i) {
            int64_t a = position(i);
            double x = inputs[i];
            const double *__restrict line = matrix + a * n_full;
            double *__restrict r = reach;
            if (i == 0) {
                for (int64_t j = 0; j < a; ++j) r[j] = matrix[j * n_full + a] * x;
                for (int64_t j = a; j < used; ++j) r[j] = line[j] * x;
            } else {
                for (int64_t j = 0; j < a; ++j) r[j] += matrix[j * n_full + a] * x;
                for (int64_t j = a; j < used; ++j) r[j] += line[j] * x;
            }
        }
        double total = 0.0;
        for (int64_t i = 0; i < m; ++i) {
            double term;
            if (i < inside) {
                term = reach[position(i)] * inputs[i];
            } else {
                double &variance = far[position(i) - n_full];
                if (variance == 0.0) variance = prior;
                term = variance * inputs[i] * inputs[i];
            }
            total = i ? total + term : term;
        }
        double share = 1.0 / (1.0 + curve * (total > 0.0 ? total : 0.0)), move = share * error, fall = share * curve;
        for (int64_t j = 0; j < used; ++j) w[j] -= move * reach[j];
        for (int64_t j = 0; j < used; ++j) {
            double *__restrict line = matrix + j * n_full;
            const double *__restrict r = reach;
            double change = fall * r[j];
            if (change == 0.0) continue;
            for (int64_t k = j; k < used; ++k) line[k] -= change * r[k];
        }
        for (int64_t i = inside; i < m; ++i) {
            double &variance = far[position(i) - n_full], part = variance * inputs[i];
            w[position(i)] -= move * part;
            variance -= fall * (part * part);
        }
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
        inputs[2] = has_base ? cut(scaled, -kCut, kCut) : 0.0;
        for (int64_t i = 0; i < n_features; ++i) {
            inputs[kOwn + i] = cut((features[i] - mean[i]) * inverse[i], -kCut, kCut);
        }
        row_squares = 0.0;
        for (int64_t j = 0; j < row.n; ++j) row_squares += row.value[j] * row.value[j];
        double total = totals[kEntrySquares] + row_squares;
        double factor = root_ratio(totals[kEntries] + double(row.n), total);
        double *entries = inputs + n_dense();
        for (int64_t j = 0; j < row.n; ++j) entries[j] = row.value[j] * factor;
    }

    // The experts' linear functions of the inputs.
    void linear_parts(double *__restrict z) const {
        int64_t m = n_dense() + row.n;
        for (int64_t f = 0; f < kFull; ++f) {
            const double *w = means + f * n;
            z[f] = w[0] * inputs[0];
            for (int64_t i = 1; i < m; ++i) z[f] += w[position(i)] * inputs[i];
        }
        double *__restrict others = z + kFull;
        for (int64_t k = 0; k < kOthers; ++k) others[k] = slopes[k] * inputs[0];
        for (int64_t i = 1; i < m; ++i) {
            const double *__restrict w = slopes + position(i) * kOthers;
            double x = inputs[i];
            for (int64_t k = 0; k < kOthers; ++k) others[k] += w[k] * x;
        }
        for (int64_t k = kLinear - kSlow; k < kLinear; ++k) z[k] = z[1] + z[k];
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
        int64_t best = 0;
        for (int64_t k = 1; k < n_experts; ++k) best = r[k] > r[best] ? k : best;
        if (r[best] > 0.0 && bound > 0.0) {
            for (int64_t k = 0; k < n_experts; ++k) w[k] = (r[k] > 0.0 ? r[k] : 0.0) / (s[k] + bound);
            double total = w[0];
            for (int64_t k = 1; k < n_experts; ++k) total += w[k];
            if (total > 0.0) {
                for (int64_t k = 0; k < n_experts; ++k) w[k] /= total;
                return;
            }
        }
        for (int64_t k = 0; k < n_experts; ++k) w[k] = 0.0;
        w[best] = 1.0;
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
