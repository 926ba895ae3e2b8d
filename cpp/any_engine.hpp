// One interface to the engines of all built-in combinations, so that the bindings know none of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "engine.hpp"
#include "regression.hpp"

namespace swapcal {

// What `predict` finds out.
struct Drawn {
    Play play;
    int64_t t, slot;
    double phi;
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
    virtual const Values &values() const = 0;
    virtual bool crowded() const = 0;
    virtual Play play(const Row &row, bool hinted, double hint) = 0;
    virtual Drawn predict(const Row &row, bool hinted, double hint) = 0;
    virtual Errors errors(const Learned &played, double label, int64_t t, bool hinted, double hint) = 0;
    virtual void learn(const Row &row, const Learned &played, const Errors &e, int64_t t, bool hinted, double hint) = 0;
    virtual int64_t run(const Contexts &x, const double *y, const double *hints, const double *features, double *out,
                        int64_t start, int64_t stop) = 0;

    // Twin of Round.see: the row of the m entries in the reader, with the level set of the hint in force. A learning
    // hint takes the given one as its base.
    Row looked_at(int64_t m, const double *features, bool &hinted, double &hint) {
        if (model) {
            hint = model->forecast({reader.index.data(), reader.value.data(), m}, features, hinted, hint);
            hinted = true;
        }
        return reader.row(m, hinted, hint);
    }
};

template <class Evidence>
struct EngineOf final : AnyEngine {
    Engine<Evidence> engine;

    EngineOf(Reader r, Engine<Evidence> e) : AnyEngine(std::move(r)), engine(e) {}

    const Settings &settings() const override { return engine.settings; }
    Books &books() override { return engine.books; }
    const Values &values() const override { return engine.values; }
    bool crowded() const override { return engine.crowded(); }

    Play play(const Row &row, bool hinted, double hint) override { return engine.play(row, hinted, hint); }

    Drawn predict(const Row &row, bool hinted, double hint) override {
        Play play = engine.settled(row, hinted, hint);
        int64_t t = engine.books.issue();
        bool lower = engine.draws_lower(play, t);
        double phi = lower ? play.phi_lower : play.phi_upper;
        engine.books.draw(engine.evidence, phi);
        return {play, t, lower ? play.lower : play.upper, phi};
    }

    Errors errors(const Learned &played, double label, int64_t t, bool hinted, double hint) override {
        return engine.errors(played, label, t, hinted, hint);
    }

    void learn(const Row &row, const Learned &played, const Errors &e, int64_t t, bool hinted, double hint) override {
        engine.learn(row, played, e, hinted, hint);
        engine.books.close(t);
    }

    // Rounds start to stop of a stream, or fewer: it stops where more room is needed, and returns where. A label that is
    // NaN is not learned from; a hint that is NaN is none.
    int64_t run(const Contexts &x, const double *y, const double *hints, const double *features, double *out,
                int64_t start, int64_t stop) override {
        Books &books = engine.books;
        for (int64_t i = start; i < stop; ++i) {
            if (engine.crowded()) return i;
            int64_t m = x.dense ? reader.dense(x.dense + i * reader.n_own)
                                : reader.sparse(x.indices + x.indptr[i], x.values + x.indptr[i],
                                                x.indptr[i + 1] - x.indptr[i]);
            // Whoever calls has looked at all contexts before; this is for those who have not.
            if (m < 0) throw std::invalid_argument("a context holds a value that is not allowed");
            double hint = hints ? hints[i] : 0.0;
            bool hinted = hints && !std::isnan(hint);
            Row row = looked_at(m, features ? features + i * model->n_features : nullptr, hinted, hint);
            Drawn drawn = predict(row, hinted, hint);
            const Play &play = drawn.play;
            engine.evidence.prepare(drawn.slot, row);
            double value = engine.values.born[drawn.slot];
            out[i] = value;
            if (std::isnan(y[i])) {
                books.unreserve(engine.evidence, drawn.phi);
                books.close(drawn.t);
                continue;
            }
            Learned played{drawn.slot, engine.values.born[play.lower + play.upper - drawn.slot], play.point(value),
                           play.kind, drawn.phi};
            Errors errors = engine.errors(played, y[i], drawn.t, hinted, hint);
            if (model) model->learn_now(y[i]);
            learn(row, played, errors, drawn.t, hinted, hint);
        }
        return stop;
    }
};

}  // namespace swapcal
