// One interface to the engines of all built-in combinations, so that the bindings know none of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "engine.hpp"
#include "regression.hpp"
#include "waiting.hpp"

namespace swapcal {

// What `predict` finds out.
struct Drawn {
    Play play;
    int64_t t;
    Learned played;
};

// Where the contexts of a recorded stream are: dense, or in compressed sparse rows.
struct Contexts {
    const double *dense;
    const int64_t *indptr, *indices;
    const double *values;
};

struct AnyEngine {
    Reader reader;
    Waiting waiting{};
    Regression *model = nullptr;  // the learning hint, if there is one

    explicit AnyEngine(Reader r) : reader(std::move(r)) {}
    virtual ~AnyEngine() = default;
    virtual const Settings &settings() const = 0;
    virtual Books &books() = 0;
    virtual const Values &values() const = 0;
    virtual bool crowded() const = 0;
    virtual double beyond() const = 0;
    virtual Play play(const Row &row, bool hinted, double hint) = 0;
    virtual Drawn predict(const Row &row, bool hinted, double hint, bool based, double base) = 0;
    virtual Errors errors(const Learned &played, double label, int64_t t, bool hinted, double hint) = 0;
    virtual void learn(const Row &row, const Learned &played, const Errors &e, int64_t t, bool hinted, double hint) = 0;
    virtual void score(const Row &row, const Learned &played, const Errors &e, bool hinted, double hint, bool based,
                       double base, double label, int64_t t) = 0;
    virtual void run(const Contexts &x, const double *y, const double *hints, const double *features, double *out,
                     int64_t n_rows, const Arrivals *late, int64_t *progress) = 0;

    // Twin of Round.see: the row of the m entries in the reader, with the level set of the hint in force. A learning
    // hint takes the given one as its base.
    Row looked_at(int64_t m, const double *features, bool &hinted, double &hint) {
        if (model) {
            hint = model->forecast({reader.at, reader.entry, reader.seen(reader.at, m)}, features, hinted, hint);
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
    double beyond() const override { return engine.beyond; }

    Play play(const Row &row, bool hinted, double hint) override { return engine.play(row, hinted, hint); }

    Drawn predict(const Row &row, bool hinted, double hint, bool based, double base) override {
        Play play = engine.settled(row, hinted, hint);
        int64_t t = engine.books.issue();
        return {play, t, draw(play, t, hinted, hint, based, base)};
    }

    Learned draw(const Play &play, int64_t t, bool hinted, double hint, bool based, double base) {
        // Looked up, as nobody can guess which of the two it is.
        const int64_t slots[] = {play.upper, play.lower};
        const double phis[] = {play.phi_upper, play.phi_lower};
        int lower = engine.draws_lower(play, t);
        engine.books.draw(engine.evidence, phis[lower], phis[1 - lower]);
        double value = engine.values.by_slot[slots[lower]], other = engine.values.by_slot[slots[1 - lower]];
        Learned played{slots[lower], other, play.point(value), play.kind, phis[lower], 0.0, 0.0};
        engine.show(played, t, hinted, hint, model != nullptr, based, base);
        return played;
    }

    Errors errors(const Learned &played, double label, int64_t t, bool hinted, double hint) override {
        return engine.errors(played, label, t, hinted, hint);
    }

    void learn(const Row &row, const Learned &played, const Errors &e, int64_t t, bool hinted, double hint) override {
        engine.learn(row, played, e, t, hinted, hint, false, t == engine.books.numbers[0] - 1);
        engine.books.close(t);
    }

    void score(const Row &row, const Learned &played, const Errors &e, bool hinted, double hint, bool based, double base,
               double label, int64_t t) override {
        engine.score(row, played, e, hinted, hint, based, base, label, t);
    }

    // Learns the outcome of a round that waited; one that has expired meanwhile is let go.
    void take(int64_t line) {
        const double *x = waiting.numbers + line * Waiting::kNumbers;
        int64_t t = waiting.whole[line * Waiting::kWholes + Waiting::kRoundOf];
        if (engine.books.is_open(t)) {
            Row row = waiting.row(line);
            Learned played = waiting.played(line);
            double hint = x[Waiting::kHintOf], base = x[Waiting::kBaseOf], label = x[Waiting::kLabelOf];
            bool hinted = !std::isnan(hint), based = !std::isnan(base);
            int64_t lag = engine.books.numbers[0] - 1 - t;
            Errors errors = engine.errors(played, label, t, hinted, hint);
            if (model) {
                int64_t own = reader.seen(row.index, row.n);
                packed_.resize(model->n_experts);
                std::memcpy(packed_.data(), waiting.scores + line * waiting.n_scores, waiting.n_scores);
                const double *extra = waiting.n_features ? waiting.features + line * waiting.n_features : nullptr;
                model->update({row.index, row.value, own}, extra, based, base, engine.inside(label), hint, packed_.data());
            }
            engine.score(row, played, errors, hinted, hint, based, base, label, t);
            learn(row, played, errors, t, hinted, hint);
            engine.books.rounds[1] += lag > 0;
        }
        waiting.release(line);
    }

    // All rounds of a stream, or fewer: it stops where more room is needed. `progress` has the rows that are done, the
    // codes that are learned, the entries for which there was no room, and then the lines of rows that wait. A label
    // that is NaN is not learned from; a hint that is NaN is none.
    void run(const Contexts &x, const double *y, const double *hints, const double *features, double *out,
             int64_t n_rows, const Arrivals *late, int64_t *progress) override {
        Books &books = engine.books;
        int64_t *lines = progress + 3;
        auto learned = [&](int64_t end, int64_t row) {
            if (end > late->n_codes) throw std::invalid_argument("ends must not pass the codes");
            for (int64_t &k = progress[1]; k < end; ++k) {
                if (engine.crowded()) return false;
                int64_t code = late->codes[k];
                if (code >= row) throw std::invalid_argument("an outcome is learned before its forecast");
                int64_t line = code < 0 ? -1 - code : lines[code] - 1;
                if (line >= waiting.n_lines) throw std::invalid_argument("no such round waits");
                if (line >= 0) take(line);
            }
            return true;
        };
        for (int64_t &i = progress[0]; i < n_rows; ++i) {
            if (late && !learned(late->ends[i + 1], i)) return;
            if (late && progress[1] < late->n_codes) soon(late->codes[progress[1]], lines, i);
            if (engine.crowded()) return;
            int64_t m = x.dense ? reader.dense(x.dense + i * reader.n_own)
                                : reader.sparse(x.indices + x.indptr[i], x.values + x.indptr[i],
                                                x.indptr[i + 1] - x.indptr[i]);
            // Whoever calls has looked at all contexts before; this is for those who have not.
            if (m < 0) throw std::invalid_argument("a context holds a value that is not allowed");
            double base = hints ? hints[i] : 0.0, hint = base;
            hint = hint < engine.values.low ? engine.values.low : hint > engine.values.high ? engine.values.high : hint;
            bool based = hints && !std::isnan(base), hinted = based;
            const double *extra = features ? features + i * model->n_features : nullptr;
            Row row = looked_at(m, extra, hinted, hint);
            bool missing = std::isnan(y[i]), waits = late && (missing ? late->late[i] == Arrivals::kNotYet : late->late[i] != 0);
            if (waits && !waiting.room(row.n)) {
                progress[2] = row.n > 1 ? row.n : 1;
                return;
            }
            Play play = engine.settled(row, hinted, hint);
            int64_t t = books.issue();
            Learned played = draw(play, t, hinted, hint, based, base);
            engine.evidence.prepare(played.slot, row);
            out[i] = played.shown;
            if (missing && !waits) {
                engine.drop(played, t, hinted, hint, based, base);
                books.unreserve(engine.evidence, played.phi);
                books.close(t);
                continue;
            }
            if (waits) {
                // One more than the line, so that 0 is none.
                lines[i] = 1 + waiting.add(row, played, t, hinted, hint, based, base, model, extra, y[i], late->due[i]);
                continue;
            }
            Errors errors = engine.errors(played, y[i], t, hinted, hint);
            engine.score(row, played, errors, hinted, hint, based, base, y[i], t);
            if (model) model->learn_now(engine.inside(y[i]));
            engine.learn(row, played, errors, t, hinted, hint, true, true);
            books.close(t);
        }
        if (late) learned(late->n_codes, n_rows);
    }

  private:
    std::vector<uint16_t> packed_;

    // The line of what is learned next, on its way to the caches while a round is played.
    void soon(int64_t code, const int64_t *lines, int64_t row) const {
        int64_t line = code < 0 ? -1 - code : code < row ? lines[code] - 1 : -1;
        if (line >= 0 && line < waiting.n_lines) waiting.prefetch(line);
    }
};

}  // namespace swapcal
