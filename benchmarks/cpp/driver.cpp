// The kernels without Python, over one fixed stream: for instruction counts, and for what a float32 state would gain.
//   driver WORKLOAD PASSES      plays the block of rounds PASSES times; prints the sum of the forecasts, and the vectors
//   driver float32 PASSES       prints how many times faster the engine is with float32 state, dense and sparse
// WORKLOAD is finite, linear, sparse or hint. `swapcal bench speed` compiles this file with the flags of the package.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <vector>

#include "any_engine.hpp"
#include "marks.hpp"

using namespace swapcal;

constexpr int64_t kRounds = 2048, kLongRounds = 65536, kRoom = 128, kSizes = 24, kWindow = 64, kLevels = 10;

// Numbers in [0, 1), the twin of randomness.uniform: seed 0, one after the other.
struct Numbers {
    uint64_t mixed = mix64(kGolden);
    int64_t t = 0;
    double next() { return uniform(mixed, t++); }
};

struct Stream {
    std::vector<double> dense, values, y, hints;
    std::vector<int64_t> indptr{0}, indices;

    Contexts contexts() const {
        return {dense.empty() ? nullptr : dense.data(), indptr.data(), indices.data(), values.data()};
    }
};

// Contexts of n entries, the first of them 1; outcomes depend on the second.
Stream dense_stream(int64_t n_rounds, int64_t n, double scale, bool hinted) {
    Stream s;
    Numbers numbers;
    for (int64_t i = 0; i < n_rounds; ++i) {
        for (int64_t j = 0; j < n; ++j) s.dense.push_back(scale * (j ? 2.0 * numbers.next() - 1.0 : 1.0));
        double chance = s.dense[i * n + 1] > 0.0 ? 0.7 : 0.3;
        if (hinted) s.hints.push_back(0.25 + 0.5 * numbers.next());
        s.y.push_back(numbers.next() < chance ? 1.0 : 0.0);
    }
    return s;
}

// `active` ones among n entries: one in each of as many equal parts.
Stream sparse_stream(int64_t n_rounds, int64_t n, int64_t active) {
    Stream s;
    Numbers numbers;
    int64_t part = n / active;
    for (int64_t i = 0; i < n_rounds; ++i) {
        for (int64_t k = 0; k < active; ++k) {
            s.indices.push_back(k * part + int64_t(numbers.next() * double(part)));
            s.values.push_back(1.0);
        }
        s.indptr.push_back(int64_t(s.indices.size()));
        s.y.push_back(numbers.next() < (s.indices[i * active] % 2 ? 0.7 : 0.3) ? 1.0 : 0.0);
    }
    return s;
}

// The constants of engine/values.py.
Settings settings() {
    Settings s{};
    s.property = {PropertyKind::Mean, 0.0, 1.0, 1.0, 0.5, 1, true};
    s.cuts = {11.0, 1.5, 0.01, 0.25, 2.0, 16.0, 0.002, 0.2, 0.05, 0.25, 0.25, false};
    s.draw_seed = mix64(1 + kGolden);
    s.jitter_seed = mix64(mix64(1) + kGolden);
    s.trust = 0.25, s.noise = 0.05, s.jitter = 0.0;
    return s;
}

constexpr double kClean = 2.0;

// Owns what Python owns elsewhere.
struct State {
    std::vector<std::unique_ptr<char[]>> blocks;

    template <class T>
    T *zeros(int64_t n) {
        blocks.push_back(std::make_unique<char[]>(n * sizeof(T)));
        return reinterpret_cast<T *>(blocks.back().get());
    }

    Values values() {
        return {0.0, 1.0, zeros<double>(kRoom), zeros<int64_t>(kRoom), zeros<double>(kRoom), zeros<int64_t>(1),
                zeros<double>(Values::kGap * (kRoom + 1)), kRoom};
    }

    Record record(int64_t n) { return {zeros<double>(n), zeros<double>(n), zeros<double>(5), kClean, {nullptr, nullptr, n}}; }

    Scale scale() {
        Scale s{zeros<int64_t>(kSizes), zeros<double>(kSizes), zeros<int64_t>(1), kSizes};
        s.sizes[0] = 0x1p-20, s.numbers[0] = 1;
        return s;
    }

    Share share() {
        constexpr int64_t blocks = Share::kMostBlocks;
        Share s{{settings().property, 0.5}, 0.0, 1.0, 0.0, 0.002, 0.0, zeros<double>(Share::kTotals),
                zeros<double>(blocks * Share::kColumns), zeros<double>(Share::kBins * Share::kBinColumns),
                zeros<double>(Share::kGrid), blocks};
        s.totals[Share::kSpan] = 64.0;
        return s;
    }

    Books books(int64_t n) {
        return {zeros<double>(kRoom * n), zeros<double>(kRoom * n), zeros<double>(kRoom * n), zeros<double>(kRoom), zeros<double>(3),
                zeros<double>(Books::kTotals), zeros<int64_t>(3), zeros<uint32_t>(kWindow), zeros<int64_t>(2), n, kWindow, kWindow};
    }
};

// Twin of evidence.hpp's Finite with everything per entry in single precision; gathered into doubles to be weighed.
struct SingleFinite {
    static constexpr bool scaled = false;
    AdaNormalHedge potential;
    float *sums, *spreads, *weights;
    double *counts, *unit;
    int64_t n;
    double radius;

    double sign(int64_t bin, const Row &row) const {
        double total = 0.0;
        for (int64_t k = 0; k < row.n; ++k) total += double(weights[bin * n + row.index[k]]) * row.value[k];
        return total;
    }
    double size(int64_t, double sign) const { return sign; }
    void prepare(const int64_t *index, int64_t m, int64_t bin) const {
        if (n < kWide) return;
        for (int64_t k = 0; k < m; ++k) SWAPCAL_PREFETCH(weights + bin * n + index[k]);
    }
    void prepare(int64_t bin, const Row &row) const {
        if (n < kWide) return;
        for (int64_t k = 0; k < row.n; ++k) {
            SWAPCAL_PREFETCH(sums + bin * n + row.index[k]);
            SWAPCAL_PREFETCH(spreads + bin * n + row.index[k]);
        }
    }
    double level(int64_t, const Row &) const { return 0.0; }
    double drift(int64_t, double now, double phi, double v) const { return (now - phi) * v; }
    double reserve(double phi) const { return std::fabs(phi); }

    void record(int64_t bin, const Row &row, double v) {
        float *s = sums + bin * n, *c = spreads + bin * n, *w = weights + bin * n;
        double block_s[kBlock] = {}, block_c[kBlock] = {}, block_w[kBlock];  // rows here are shorter
        for (int64_t k = 0; k < row.n; ++k) {
            double g = row.value[k] * v;
            block_s[k] = double(s[row.index[k]]) + g;
            block_c[k] = double(c[row.index[k]]) + potential.spread(g);
        }
        potential.weigh(block_s, block_c, block_w, row.n);
        for (int64_t k = 0; k < row.n; ++k) {
            s[row.index[k]] = float(block_s[k]);
            c[row.index[k]] = float(block_c[k]);
            w[row.index[k]] = float(block_w[k]);
        }
        counts[bin] += 1.0;
    }
};

using Ours = swapcal::Finite<AdaNormalHedge>;

template <class E>
std::unique_ptr<AnyEngine> engine(State &state, Reader reader, E evidence, int64_t n) {
    Books books = state.books(n);
    books.totals[Books::kStart] = 0.5;
    Engine<E> made{settings(), evidence, state.values(), state.record(n), state.scale(), books,
                   {state.share(), state.share()}, true};
    return std::make_unique<EngineOf<E>>(std::move(reader), made);
}

template <class E = Ours, class T = double>
std::unique_ptr<AnyEngine> finite(State &state, int64_t n_own, int64_t n_levels = 0) {
    int64_t n = n_own + n_levels, m = kRoom * n;
    E evidence{{}, state.zeros<T>(m), state.zeros<T>(m), state.zeros<T>(m), state.zeros<double>(kRoom), state.zeros<double>(1), n, 1.0};
    *evidence.unit = 0x1p20;
    return engine(state, Reader(n_own, n_own, 0.0, Grid(0.0, 1.0, n_levels)), evidence, n);
}

std::unique_ptr<AnyEngine> linear(State &state, int64_t n) {
    swapcal::Linear evidence{state.zeros<double>(kRoom * n), state.zeros<double>(kRoom), n};
    return engine(state, Reader(n, n, 1.0, Grid(0.0, 1.0, 0)), evidence, n);
}

double play(AnyEngine &engine, const Stream &stream, int64_t passes) {
    std::vector<double> out(stream.y.size());
    double total = 0.0;
    for (int64_t k = 0; k < passes; ++k) {
        int64_t n = int64_t(out.size()), progress[3] = {};
        engine.run(stream.contexts(), stream.y.data(), stream.hints.empty() ? nullptr : stream.hints.data(), nullptr,
                   out.data(), n, nullptr, progress);
        if (progress[0] != n) throw std::length_error("the driver has too little room for values");
        for (double each : out) total += each;
    }
    return total;
}

// The marks of forecasts with these contexts, as `predict` makes them.
double marks(const Stream &stream, int64_t n, int64_t passes) {
    std::vector<int64_t> index(n);
    for (int64_t k = 0; k < n; ++k) index[k] = k;
    double total = 0.0;
    for (int64_t k = 0; k < passes; ++k) {
        for (size_t i = 0; i < stream.y.size(); ++i) {
            swapcal::Mark mark;
            for (double x : {stream.y[i], 0.25, 0.5, stream.dense[i * n + 1]}) mark.number(x);
            mark.number(0.3);
            mark.number(0.3);
            mark.row({index.data(), stream.dense.data() + i * n, n});
            total += mark.result();
        }
    }
    return total;
}

double seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

// The median of how much longer double state takes than single, in turns.
double gain(const Stream &stream, int64_t n, int64_t passes) {
    std::vector<double> ratios;
    for (int repeat = 0; repeat < 9; ++repeat) {
        State state;
        auto with_double = finite(state, n);
        auto with_single = finite<SingleFinite, float>(state, n);
        double start = seconds();
        play(*with_double, stream, passes);
        double middle = seconds();
        play(*with_single, stream, passes);
        ratios.push_back((middle - start) / (seconds() - middle));
    }
    std::sort(ratios.begin(), ratios.end());
    return ratios[ratios.size() / 2];
}

const char *vectors() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    return __builtin_cpu_supports("avx2") ? "avx2" : "default";
#else
    return "default";
#endif
}

int main(int argc, char **argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: driver finite|linear|sparse|hint|marks|float32 PASSES\n"), 2;
    const char *name = argv[1];
    int64_t passes = std::atoll(argv[2]);
    auto is = [&](const char *other) { return std::strcmp(name, other) == 0; };
    if (is("float32")) {
        std::printf("%.3f %.3f\n", gain(dense_stream(kLongRounds, 20, 1.0, false), 20, passes),
                    gain(sparse_stream(kLongRounds, 10000, 10), 10000, passes));
        return 0;
    }
    State state;
    double total;
    if (is("finite")) {
        total = play(*finite(state, 20), dense_stream(kRounds, 20, 1.0, false), passes);
    } else if (is("linear")) {
        total = play(*linear(state, 10), dense_stream(kRounds, 10, 0.25, false), passes);
    } else if (is("sparse")) {
        total = play(*finite(state, 10000), sparse_stream(kRounds, 10000, 10), passes);
    } else if (is("hint")) {
        total = play(*finite(state, 20, kLevels), dense_stream(kRounds, 20, 1.0, true), passes);
    } else if (is("marks")) {
        total = marks(dense_stream(kRounds, 20, 1.0, false), 20, passes);
    } else {
        return std::fprintf(stderr, "no such workload: %s\n", name), 2;
    }
    std::printf("%.17g %s\n", total, vectors());
    return 0;
}
