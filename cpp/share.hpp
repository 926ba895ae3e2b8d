// How much of a correction is shown: twin of engine/share.py, bit for bit. All state is in arrays that Python owns.
#pragma once

#include <cmath>
#include <cstdint>

#include "property.hpp"
#include "row.hpp"

namespace swapcal {

// Losses: c (p - z) V(p, z) with z the property of the outcome alone.
struct Losses {
    Property property;
    double share;

    double point(double y) const { return property.kind == PropertyKind::Moment ? property.raised(y) : y; }
    double v(double p, double z) const { return property.identification_at(p, z); }
    double loss(double p, double z) const { return share * ((p - z) * v(p, z)); }
};

struct Share {
    enum Block {
        kN, kKnownOf, kWorth, kWeight, kMoves, kWorst, kShares, kShown, kPairs, kVs, kLags, kLagSquares, kVLags, kColumns
    };
    enum Bin { kCount, kDr, kDd, kD, kR, kRr, kBinColumns };
    enum Group { kSizeOf, kBaseOf, kSaidOf, kBaseSquares, kCrossed, kSaidSquares, kGroupColumns };
    enum Total {
        kShare, kKnown, kSpent, kOut, kModel, kDistance, kSizes, kVariance, kSpan, kLast, kInside,
        // Occasions of outcomes: how many, rows and number of those of eight or more, their shift, and pairs.
        kOccasions, kMany, kBig, kShift, kPairSum, kPairCount,
        // The one that is under way: rows, hits, expected hits, sums of r and r^2 at the base, of r at what was said, of
        // the loss of what was said over the base's.
        kRows, kHits, kExpected, kBiasNow, kSquareNow, kSaidNow, kLossNow,
        // Over occasions: biases of base and said, their squares and product, losses and their squares, pairs of rows.
        kBias, kSaidBias, kBiasSquare, kCross, kSaidSquare, kLossSum, kLossSquare, kRowPairs,
        // The occasion of forecasts that is under way: rows, sum of d, of d^2; whether an outcome came since the last.
        kForecasts, kMove, kMoveSquare, kArrived,
        // Whether corrections are shown, and since which round that is so; the sum of lags; of d times the change of r.
        kOn, kSince, kLag, kTurn,
        kTotals
    };
    static constexpr int64_t kBins = 72, kGrid = 9, kMostBlocks = 512;
    static constexpr double kWait = 32.0, kDriftSpan = 64.0, kPlausible = 2.5, kFew = 8.0, kPrior = 0.25, kOpen = 0.5, kFlattest = 0.25, kDrawn = 0.1, kErrors = 0.5;
    static constexpr int64_t kBlocks = 6;  // that count, before anything is shown
    static constexpr double kDrifts[3] = {0.0, 1e-4, 1e-2};
    static constexpr double kShared[kGrid] = {1e-5, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9};

    Losses losses;
    double low, width;      // of the domain
    double caution, budget, tolerance;
    double *totals, *blocks, *bins, *likely;  // kTotals; n_blocks * kColumns; kBins * kBinColumns; kGrid
    int64_t n_blocks;
    double *groups;  // n_groups * kGroupColumns, the first of them of all rounds; none without a tolerance
    int64_t n_groups;

    // Worst plausible -d r, before the outcome.
    double worst(double base, double d) const {
        const Property &p = losses.property;
        double v = losses.v(base, losses.point(d > 0.0 ? p.low : p.high)), most = std::fabs(v);
        if (!binary()) {
            double usual = kPlausible * totals[kSizes] / (totals[kKnown] > 1.0 ? totals[kKnown] : 1.0);
            most = usual < most ? usual : most;
        }
        return std::fabs(d) * most;
    }

    bool binary() const { return losses.property.kind == PropertyKind::Quantile || totals[kInside] == 0.0; }

    static int64_t bin(double lag) {
        int64_t b = int64_t(3.0 * std::log2(lag + 1.0));
        return b < kBins - 1 ? b : kBins - 1;
    }

    // The slope of V: at the base, or between base and what was said where that is flatter; `size` is the sum of d^2.
    double curve(double size) const {
        double tangent = totals[kDistance] > 0.0 ? totals[kSizes] / totals[kDistance] : 1.0;
        double secant = size > 0.0 ? totals[kTurn] / size : tangent, least = kFlattest * tangent;
        secant = secant < least ? least : secant;
        return secant < tangent ? secant : tangent;
    }

    // Before round t, in which `said` would correct `base`: what is shown.
    double show(int64_t t, double said, double base) {
        bool begins = t / int64_t(totals[kSpan]) != int64_t(totals[kLast]);
        if (totals[kRows] > 0.0) end_occasion();
        if (totals[kArrived] > 0.0 || totals[kKnown] == 0.0) {
            if (totals[kForecasts] >= kFew) {
                blocks[int64_t(totals[kLast]) * kColumns + kPairs] += totals[kMove] * totals[kMove] - totals[kMoveSquare];
            }
            totals[kForecasts] = totals[kMove] = totals[kMoveSquare] = totals[kArrived] = 0.0;
        }
        if (begins) {
            while (t / int64_t(totals[kSpan]) >= n_blocks) merge();
            totals[kLast] = double(t / int64_t(totals[kSpan]));
            if (totals[kKnown] >= kWait) look(int64_t(totals[kLast]));
        }
        // Beyond the range the engine has nothing to say.
        double d = said - base, k = low <= base && base <= low + width ? now() : 0.0;
        double *b = blocks + int64_t(totals[kLast]) * kColumns;
        if ((k > 0.0) != (totals[kOn] > 0.0)) {
            totals[kOn] = k > 0.0 ? 1.0 : 0.0;
            totals[kSince] = double(t);
        }
        b[kN] += 1.0;
        b[kWeight] += d * d;
        b[kMoves] += d;
        b[kWorst] += worst(base, d);
        b[kShares] += k;
        b[kShown] += (k * d) * (k * d);
        totals[kForecasts] += 1.0;
        totals[kMove] += d;
        totals[kMoveSquare] += d * d;
        return k == 1.0 ? said : k == 0.0 ? base : base + k * d;
    }

    // The share in force.
    double now() const {
        if (totals[kKnown] < kWait) return 0.0;
        double rows = 2.0 / totals[kKnown], days = 0.25 / totals[kOccasions];
        double most = tolerance > budget ? tolerance : budget;
        return totals[kSpent] + totals[kOut] <= (most + (rows > days ? rows : days)) * totals[kModel] ? totals[kShare] : 0.0;
    }

    // The outcome of round t, `lag` forecasts later.
    void learn(int64_t t, double said, double base, double shown, double y, int64_t lag, const Row &row) {
        const Property &p = losses.property;
        double z = losses.point(y), d = said - base, r = -losses.v(base, z), r_said = -losses.v(said, z);
        double loss = losses.loss(base, z), worth = d * r;
        double *b = block_of(t), *lagged = bins + bin(double(lag)) * kBinColumns;
        if (p.kind != PropertyKind::Quantile && !(y == p.low || y == p.high)) totals[kInside] += 1.0;
        totals[kKnown] += 1.0;
        totals[kModel] += loss;
        totals[kDistance] += std::fabs(z - base);
        totals[kSizes] += std::fabs(r);
        lagged[kCount] += 1.0;
        lagged[kDr] += worth;
        lagged[kDd] += d * d;
        lagged[kD] += d;
        lagged[kR] += r;
        lagged[kRr] += r * r;
        b[kKnownOf] += 1.0;
        b[kWorth] += worth;
        double far = std::log(1.0 + double(lag));
        b[kVs] += -r;
        b[kLags] += far;
        b[kLagSquares] += far * far;
        b[kVLags] += -r * far;
        totals[kSpent] += shown != base ? losses.loss(shown, z) - loss : 0.0;
        totals[kLag] += double(lag);
        totals[kTurn] += d * (r - r_said);
        double q = p.kind == PropertyKind::Quantile ? 1.0 - p.level : (base - low) / width;
        q = q < 0.0 ? 0.0 : q > 1.0 ? 1.0 : q;
        double hit = q + r < 0.0 ? 0.0 : q + r > 1.0 ? 1.0 : q + r;
        totals[kVariance] += binary() ? q * (1.0 - q) : r * r;
        if (totals[kRows] == 0.0) totals[kOccasions] += 1.0;
        totals[kArrived] = 1.0;
        totals[kRows] += 1.0;
        totals[kHits] += hit;
        totals[kExpected] += q;
        totals[kBiasNow] += r;
        totals[kSquareNow] += r * r;
        totals[kSaidNow] += r_said;
        totals[kLossNow] += losses.loss(said, z) - loss;
        if (!(tolerance > 0.0)) return;
        tell(0, 1.0, r, r_said);
        row.each([&](int64_t k, int64_t at) { tell(1 + at, row.value[k], r, r_said); });
    }

    // Round t will have no outcome.
    void drop(int64_t t, double said, double base, double shown) {
        double *b = block_of(t), d = said - base;
        if (b[kN] <= b[kKnownOf]) return;
        double worst_now = worst(base, d), k = d != 0.0 ? (shown - base) / d : 0.0;
        b[kN] -= 1.0;
        b[kMoves] -= d;
        lower(b[kWeight], d * d);
        lower(b[kWorst], worst_now);
        lower(b[kShares], k);
        lower(b[kShown], (shown - base) * (shown - base));
    }

  private:
    void tell(int64_t group, double f, double r, double s) {
        double *g = groups + group * kGroupColumns, square = f * f;
        g[kSizeOf] += square;
        g[kBaseOf] += f * r;
        g[kSaidOf] += f * s;
        g[kBaseSquares] += square * (r * r);
        g[kCrossed] += square * (r * s);
        g[kSaidSquares] += square * (s * s);
    }

    double *block_of(int64_t t) const {
        int64_t c = t / int64_t(totals[kSpan]);
        return blocks + (c < n_blocks ? c : n_blocks - 1) * kColumns;
    }

    static void lower(double &total, double by) { total = total > by ? total - by : 0.0; }

    void merge() {
        for (int64_t c = 0; c < n_blocks; ++c) {
            for (int64_t k = 0; k < kColumns; ++k) {
                double *to = blocks + c * kColumns + k;
                *to = 2 * c < n_blocks ? blocks[2 * c * kColumns + k] + (2 * c + 1 < n_blocks ? blocks[(2 * c + 1) * kColumns + k] : 0.0) : 0.0;
            }
        }
        totals[kSpan] *= 2.0;
    }

    void end_occasion() {
        double n = totals[kRows], r = totals[kBiasNow], s = totals[kSaidNow], l = totals[kLossNow];
        totals[kBias] += r;
        totals[kSaidBias] += s;
        totals[kBiasSquare] += r * r;
        totals[kCross] += r * s;
        totals[kSaidSquare] += s * s;
        totals[kLossSum] += l;
        totals[kLossSquare] += l * l;
        totals[kRowPairs] += n * n - n;
        if (n >= kFew) {
            totals[kMany] += n;
            totals[kPairSum] += r * r - totals[kSquareNow];
            totals[kPairCount] += n * n - n;
            double p = totals[kExpected] / n + totals[kShift] / (totals[kBig] + 10.0), h = totals[kHits];
            p = p < 1e-4 ? 1e-4 : p > 1.0 - 1e-4 ? 1.0 - 1e-4 : p;
            totals[kShift] += (h - totals[kExpected]) / n;
            totals[kBig] += 1.0;
            for (int64_t j = 0; j < kGrid && binary(); ++j) {
                double a = 1.0 / kShared[j] - 1.0, u = p * a, v = a - u;
                likely[j] += log_beta(h + u, n - h + v) - log_beta(u, v);
            }
        }
        for (int64_t k = kRows; k <= kLossNow; ++k) totals[k] = 0.0;
    }

    static double log_beta(double a, double b) { return log_gamma(a) + log_gamma(b) - log_gamma(a + b); }

    // Stirling's series, from 8 on.
    static double log_gamma(double x) {
        double product = 1.0;
        for (; x < 8.0; x += 1.0) product *= x;
        double i = 1.0 / (x * x);
        return (x - 0.5) * std::log(x) - x + 0.91893853320467274178 +
               (1.0 / 12.0 - i * (1.0 / 360.0 - i * (1.0 / 1260.0 - i / 1680.0))) / x - std::log(product);
    }

    // How much rows of an occasion share.
    double shared() const {
        if (totals[kMany] <= 0.0) return 0.0;
        double rho = 0.0;
        if (binary()) {
            double top = likely[0], total = 0.0;
            for (int64_t j = 1; j < kGrid; ++j) top = likely[j] > top ? likely[j] : top;
            for (int64_t j = 0; j < kGrid; ++j) {
                double a = std::exp(likely[j] - top);
                total += a;
                rho += a * kShared[j];
            }
            rho /= total;
        } else if (totals[kPairSum] > 0.0 && totals[kVariance] > 0.0) {
            rho = totals[kPairSum] / totals[kPairCount] / (totals[kVariance] / totals[kKnown]);
        }
        return (rho < 1.0 ? rho : 1.0) * (totals[kMany] / totals[kKnown]);
    }

    // At the beginning of a block: the share, and what those that are out may cost.
    void look(int64_t block) {
        double tails[kBins + 1][kBinColumns] = {}, l90 = 0.0;
        for (int64_t b = kBins - 1; b >= 0; --b) {
            for (int64_t k = 0; k < kBinColumns; ++k) tails[b][k] = tails[b + 1][k] + bins[b * kBinColumns + k];
            if (l90 == 0.0 && tails[b][kCount] >= 0.1 * totals[kKnown]) l90 = std::exp2(double(b + 1) / 3.0);
        }
        double unknown = 0.0, all = 0.0, span = totals[kSpan];
        for (int64_t c = 0; c < block; ++c) {
            const double *b = blocks + c * kColumns;
            if (double(block - c - 1) * span < 3.0 * l90) break;
            unknown += b[kN] - b[kKnownOf];
            all += b[kN];
        }
        double never = all > 0.0 ? unknown / all : 0.0, bend = curve(tails[0][kDd]), out = 0.0;
        int64_t m = 0;
        double worths[kMostBlocks], rests[kMostBlocks];
        for (int64_t c = 0; c < block; ++c) {
            const double *b = blocks + c * kColumns, *tail = tails[bin(double(block - c) * span)];
            worths[c] = 0.0;
            if (b[kN] <= 0.0) continue;
            double open = b[kN] - b[kKnownOf], least = -b[kWorst] / b[kN], late = least;
            if (tail[kCount] >= 30.0 && tail[kDd] > 0.0) {
                double n = tail[kCount], d = tail[kD] / n, r = tail[kR] / n, dd = tail[kDd] / n, dr = tail[kDr] / n;
                double spread = dd - d * d + kDrawn * dd, slope = (dr - d * r + kDrawn * dr) / spread, level = r - slope * d;
                double rest = tail[kRr] / n - level * (2.0 * r - level) - slope * (2.0 * (dr - level * d) - slope * dd);
                double moved = b[kMoves] / b[kN], weight = b[kWeight] / b[kN], beside = weight - moved * d;
                double error = (rest > 0.0 ? rest : 0.0) / n * (moved * moved + beside * beside / spread);
                late = level * moved + slope * weight - kErrors * std::sqrt(error);
            }
            double lost = b[kN] * never < open ? b[kN] * never : open;
            double outside = lost * least + (open - lost) * late;
            worths[c] = b[kWorth] + outside;
            double cost = 0.5 * bend * b[kShown] * open / b[kN] - b[kShares] / b[kN] * outside;
            out += cost > 0.0 ? cost : 0.0;
            if (open <= kOpen * b[kN]) m = c + 1;
        }
        totals[kOut] = out;
        totals[kShare] = 0.0;
        int64_t counted = 0;
        double sum_x = 0.0, sum_w = 0.0, pairs = 0.0;
        for (int64_t c = 0; c < m; ++c) {
            const double *b = blocks + c * kColumns;
            if (b[kN] <= 0.0) continue;
            counted += 1;
            sum_x += worths[c];
            sum_w += bend * b[kWeight];
            pairs += b[kPairs];
        }
        if (counted < kBlocks || !(sum_w > 0.0)) return;
        double slope = sum_x / sum_w, squares = 0.0, most = 1.0;
        for (int64_t c = 0; c < m; ++c) {
            const double *b = blocks + c * kColumns;
            rests[c] = b[kN] > 0.0 ? worths[c] - slope * (bend * b[kWeight]) : 0.0;
            squares += rests[c] * rests[c];
        }
        for (int64_t g = 2; m / g >= kBlocks && squares > 0.0; g *= 2) {
            double together = 0.0;
            for (int64_t part = 0; part < m / g; ++part) {
                double sum = 0.0;
                for (int64_t c = part * g; c < part * g + g; ++c) sum += rests[c];
                together += sum * sum;
            }
            most = together / squares > most ? together / squares : most;
        }
        double variance = totals[kVariance] / totals[kKnown], rho = shared();
        double few = 1.0 + (binary() ? (variance > 0.0 ? 1.0 / variance : 0.0) : 4.0) / totals[kOccasions];
        double noise = most * squares, sharing = squares + rho * few * variance * pairs;
        noise = (sharing > noise ? sharing : noise) / sum_w;
        double log_likely[3] = {}, means[3], variances[3], best = 0.0;
        for (int64_t j = 0; j < 3; ++j) {
            double mu = 0.0, p = kPrior, q = kDrifts[j] * (span / kDriftSpan);
            for (int64_t c = 0; c < m; ++c) {
                p += q;
                double w = bend * blocks[c * kColumns + kWeight];
                if (!(w > 0.0) || blocks[c * kColumns + kN] <= 0.0 || !(p + noise / w > 0.0)) continue;
                double v = p + noise / w, e = worths[c] / w - mu;
                log_likely[j] -= 0.5 * (std::log(v) + e * e / v);
                mu += p / v * e;
                p -= p * p / v;
            }
            means[j] = mu;
            variances[j] = p + q * double(block - m);
            best = j == 0 || log_likely[j] > best ? log_likely[j] : best;
        }
        double total = 0.0, mean = 0.0, second = 0.0;
        for (int64_t j = 0; j < 3; ++j) {
            double a = std::exp(log_likely[j] - best);
            total += a;
            mean += a * means[j];
            second += a * (variances[j] + means[j] * means[j]);
        }
        mean /= total;
        double spread = second / total - mean * mean;
        double k = mean - caution * std::sqrt(spread > 0.0 ? spread : 0.0);
        if (tolerance > 0.0) k = calibrated(k, variance, rho, few, double(block) * span);
        totals[kShare] = k < 0.0 ? 0.0 : k > 1.0 ? 1.0 : k;
    }

    double calibrated(double k, double variance, double rho, double few, double rounds) const {
        double known = totals[kKnown], n = totals[kOccasions], loss = totals[kLossSum], noise = totals[kLossSquare] - loss * loss / n;
        if (known < 0.8 * rounds || loss - std::sqrt((noise > 0.0 ? noise : 0.0) * few) > tolerance * totals[kModel]) return k;
        double base = totals[kBias], said = totals[kSaidBias], side = base * said > 0.0 ? 1.0 : -1.0;
        double gain = std::fabs(base) - std::fabs(said);
        double vary = (totals[kBiasSquare] + totals[kSaidSquare] - 2.0 * side * totals[kCross] - gain * gain / n) * few;
        double chance = variance * (known + rho * few * totals[kRowPairs]);
        chance = totals[kBiasSquare] > chance ? totals[kBiasSquare] : chance;
        if (base * base > 9.0 * chance && gain > 0.0 && gain * gain > 9.0 * vary) {
            double whole = side > 0.0 ? 1.0 : base / (base - said);
            return k > whole ? k : whole;
        }
        double apart = groups[kBaseSquares] + groups[kSaidSquares] - 2.0 * groups[kCrossed], moved = few;
        if (apart > 0.0) {
            double more = (totals[kBiasSquare] + totals[kSaidSquare] - 2.0 * totals[kCross]) / apart;
            moved = (more > 1.0 ? more : 1.0) * few;
        }
        double usual = variance * known > groups[kBaseSquares] ? variance * known : groups[kBaseSquares];
        return repairs(variance, chance / usual, moved) && k < 1.0 ? 1.0 : k;
    }

    bool repairs(double variance, double shared, double moved) const {
        int64_t large = 0;
        for (int64_t j = 1; j < n_groups; ++j) large += groups[j * kGroupColumns + kSizeOf] >= kWait;
        double beyond = 9.0 + 2.0 * std::log(double(large > 1 ? large : 1));
        bool repaired = false;
        for (int64_t j = 1; j < n_groups; ++j) {
            const double *g = groups + j * kGroupColumns;
            if (!(g[kSizeOf] >= kWait)) continue;
            double usual = variance * g[kSizeOf], base = g[kBaseOf], said = g[kSaidOf];
            double chance = beyond * ((usual > g[kBaseSquares] ? usual : g[kBaseSquares]) * shared);
            double side = base * said > 0.0 ? 1.0 : -1.0, gain = std::fabs(base) - std::fabs(said);
            if (!(gain * gain > beyond * ((g[kBaseSquares] + g[kSaidSquares] - 2.0 * side * g[kCrossed]) * moved))) continue;
            if (gain < 0.0 && said * said > chance) return false;
            repaired = repaired || (gain > 0.0 && base * base > chance);
        }
        return repaired;
    }
};

}  // namespace swapcal
