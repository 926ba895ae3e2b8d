// One interface to the engines of all built-in combinations, so that the bindings know none of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "engine.hpp"
#include "regression.hpp"

namespace swapcal {

// What `predict` finds out.
struct Outcome {
    Play play;
    int64_t t, bin;
};

// Where the contexts of a recorded stream are: dense, or in compressed sparse rows.
struct Contexts {
    const double *dense;
    const int64_t *indptr, *indices;
    const double *values;
};

struct AnyEngine {
    Reader reader;
    Regression *model = nullptr;  // the learning hint, if there is one

    explicit AnyEngine(Reader r) : reader(std::move(r)) {}
    virtual ~AnyEngine() = default;
    virtual const Settings &settings() const = 0;
    virtual Books &books() = 0;
    virtual Play play(const Row &row, bool hinted, double hint) = 0;
    virtual Outcome predict(const Row &row, bool hinted, double hint) = 0;
    virtual Errors errors(int64_t bin, double evidence_at, double label, int64_t t, bool hinted, double hint) = 0;
    virtual void learn(const Row &row, int64_t bin, const Errors &e, int64_t t, bool hinted, double hint) = 0;
    virtual int64_t run(const Contexts &x, const double *y, const double *hints, const double *features, double *out,
                        int64_t start, int64_t stop, int64_t until) = 0;

    // Twin of Forecaster._case: the row of the m entries in the reader, with the level set of the hint in force. A
    // learning hint takes the given one as its base.
    Row looked_at(int64_t m, const double *features, bool &hinted, double &hint) {
        if (model) {
            hint = model->forecast({reader.index.data(), reader.value.data(), m}, features, hinted, hint);
            hinted = true;
        }
        return reader.row(m, hinted, hint);
    }
};

template <class Evidence, class Record>
struct EngineOf final : AnyEngine {
    Engine<Evidence, Record> engine;

    EngineOf(Reader r, Engine<Evidence, Record> e) : AnyEngine(std::move(r)), engine(e) {}

    const Settings &settings() const override { return engine.settings; }
    Books &books() override { return engine.books; }

    Play play(const Row &row, bool hinted, double hint) override { return engine.play(row, hinted, hint); }

    Outcome predict(const Row &row, bool hinted, double hint) override {
        Play play = engine.play(row, hinted, hint);
        int64_t t = engine.books.issue();
        return {play, t, engine.draw(play, t)};
    }

    Errors errors(int64_t bin, double evidence_at, double label, int64_t t, bool hinted, double hint) override {
        return engine.errors(bin, evidence_at, label, t, hinted, hint);
    }

    void learn(const Row &row, int64_t bin, const Errors &e, int64_t t, bool hinted, double hint) override {
        engine.learn(row, bin, e, hinted, hint);
        engine.books.close(t);
    }

    // Rounds start to stop of a stream, or fewer: it stops after `until` rounds with an outcome, where the grid is to be
    // refined. Returns where it stopped. A label that is NaN is not learned from; a hint that is NaN is none.
    int64_t run(const Contexts &x, const double *y, const double *hints, const double *features, double *out,
                int64_t start, int64_t stop, int64_t until) override {
        Books &books = engine.books;
        int64_t position = books.numbers[0] % books.window;
        for (int64_t i = start; i < stop; ++i) {
            int64_t m = x.dense ? reader.dense(x.dense + i * reader.n_own)
                                : reader.sparse(x.indices + x.indptr[i], x.values + x.indptr[i],
                                                x.indptr[i + 1] - x.indptr[i]);
            // Whoever calls has looked at all contexts before; this is for those who have not.
            if (m < 0) throw std::invalid_argument("a context holds a value that is not allowed");
            if (!x.dense && i + 1 < stop) {
                // Where the next search begins.
                int64_t begin = x.indptr[i + 1], count = x.indptr[i + 2] - begin, last = engine.settings.grid.n - 1;
                for (int64_t bin : {int64_t(0), last, last / 2}) engine.evidence.prepare(x.indices + begin, count, bin);
            }
            double hint = hints ? hints[i] : 0.0;
            bool hinted = hints && !std::isnan(hint);
            Row row = looked_at(m, features ? features + i * model->n_features : nullptr, hinted, hint);
            Play play = engine.play(row, hinted, hint);
            int64_t t = books.pass(position);
            if (++position == books.window) position = 0;
            int64_t bin = engine.draw(play, t);
            engine.evidence.prepare(bin, row);
            double value = engine.settings.grid.midpoint(bin);
            out[i] = value;
            if (std::isnan(y[i])) continue;
            if (model) model->learn(y[i]);
            engine.learn(row, bin, engine.errors(bin, play.evidence_at(value), y[i], t, hinted, hint), hinted, hint);
            if (--until == 0) return i + 1;
        }
        return stop;
    }
};

}  // namespace swapcal
