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
#include <vector>

#include "any_engine.hpp"

using namespace swapcal;

constexpr int64_t kRounds = 2048, kLongRounds = 65536, kBins = 35, kWindow = 64, kLevels = 10;

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

Settings settings() {
    Settings s{Grid(0.0, 1.0, kBins), {}, 0, 0, 0.0, 0.0, 0.0, 0.0};
    s.property = {PropertyKind::Mean, 0.0, 1.0, 1.0, 0.5, 1, true};
    s.draw_seed = mix64(1 + kGolden);
    s.jitter_seed = mix64(mix64(1) + kGolden);
    s.trust = 1.0 / 3.0, s.allowance = 2.0, s.noise = 1.0 / 3.0, s.jitter = 0.0;
    return s;
}

// Owns what Python owns elsewhere.
struct State {
    std::vector<std::unique_ptr<char[]>> blocks;

    template <class T>
    T *zeros(int64_t n) {
        blocks.push_back(std::make_unique<char[]>(n * sizeof(T)));
        return reinterpret_cast<T *>(blocks.back().get());
    }

    Books books(int64_t n) {
        return {zeros<double>(kBins * n), zeros<double>(kBins), zeros<int64_t>(2), zeros<uint8_t>(kWindow),
                zeros<int64_t>(2), n, kWindow};
    }
};

// Twin of evidence.hpp's Finite with everything per entry in single precision; gathered into doubles to be weighed.
struct SingleFinite {
    AdaNormalHedge potential;
    float *sums, *spreads, *weights;
    double *counts;
    int64_t n;

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
using Record = FiniteRecord<AdaNormalHedge>;

template <class E, class R>
std::unique_ptr<AnyEngine> engine(Reader reader, E evidence, R record, Books books) {
    return std::make_unique<EngineOf<E, R>>(std::move(reader), Engine<E, R>{settings(), evidence, record, books});
}

template <class E, class T>
E finite_evidence(State &state, int64_t n) {
    int64_t m = kBins * n;
    return E{{}, state.zeros<T>(m), state.zeros<T>(m), state.zeros<T>(m), state.zeros<double>(kBins), n};
}

std::unique_ptr<AnyEngine> finite(State &state, int64_t n_own, int64_t n_levels) {
    int64_t n = n_own + n_levels, m = kBins * n;
    Record record{{}, state.zeros<double>(m), state.zeros<double>(m), state.zeros<double>(kBins), n};
    return engine(Reader(n_own, 0.0, Grid(0.0, 1.0, n_levels)), finite_evidence<Ours, double>(state, n), record,
                  state.books(n));
}

std::unique_ptr<AnyEngine> linear(State &state, int64_t n) {
    swapcal::Linear evidence{state.zeros<double>(kBins * n), state.zeros<double>(kBins), n};
    return engine(Reader(n, 1.0, Grid(0.0, 1.0, 0)), evidence, NoRecord{}, state.books(n));
}

template <class E, class T>
std::unique_ptr<AnyEngine> without_record(State &state, int64_t n) {
    return engine(Reader(n, 0.0, Grid(0.0, 1.0, 0)), finite_evidence<E, T>(state, n), NoRecord{}, state.books(n));
}

double play(AnyEngine &engine, const Stream &stream, int64_t passes) {
    std::vector<double> out(stream.y.size());
    double total = 0.0;
    for (int64_t k = 0; k < passes; ++k) {
        engine.run(stream.contexts(), stream.y.data(), stream.hints.empty() ? nullptr : stream.hints.data(), nullptr,
                   out.data(), 0, int64_t(out.size()), INT64_MAX);
        for (double each : out) total += each;
    }
    return total;
}

double seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

// The median of how much longer double state takes than single, in turns.
double gain(const Stream &stream, int64_t n, int64_t passes) {
    std::vector<double> ratios;
    for (int repeat = 0; repeat < 9; ++repeat) {
        State state;
        auto with_double = without_record<Ours, double>(state, n);
        auto with_single = without_record<SingleFinite, float>(state, n);
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
    if (argc != 3) return std::fprintf(stderr, "usage: driver finite|linear|sparse|hint|float32 PASSES\n"), 2;
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
        total = play(*finite(state, 20, 0), dense_stream(kRounds, 20, 1.0, false), passes);
    } else if (is("linear")) {
        total = play(*linear(state, 10), dense_stream(kRounds, 10, 0.25, false), passes);
    } else if (is("sparse")) {
        total = play(*finite(state, 10000, 0), sparse_stream(kRounds, 10000, 10), passes);
    } else if (is("hint")) {
        total = play(*finite(state, 20, kLevels), dense_stream(kRounds, 20, 1.0, true), passes);
    } else {
        return std::fprintf(stderr, "no such workload: %s\n", name), 2;
    }
    std::printf("%.17g %s\n", total, vectors());
    return 0;
}
