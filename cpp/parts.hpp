// Builds the engine of a forecaster from Python's settings and arrays, whose sizes it checks.
#pragma once

#include <nanobind/stl/string.h>

#include <memory>

#include "any_engine.hpp"
#include "arrays.hpp"

namespace swapcal {

// By name, as in properties/kernel.py.
inline Property property_from(const nb::dict &settings) {
    auto number = [&](const char *name) { return nb::cast<double>(settings[name]); };
    std::string kind = nb::cast<std::string>(settings["property"]);
    return {property_kind(kind), number("label_low"), number("label_high"), number("width"), number("level"),
            nb::cast<int64_t>(settings["power"]), nb::cast<bool>(settings["monotone"])};
}

// Builds an engine over the arrays of a forecaster, and keeps those arrays alive.
struct Parts {
    nb::dict settings, arrays;

    double number(const char *name) const { return nb::cast<double>(settings[name]); }
    int64_t whole(const char *name) const { return nb::cast<int64_t>(settings[name]); }
    uint64_t bits(const char *name) const { return nb::cast<uint64_t>(settings[name]); }

    // Of the size that the kernels take it to have.
    template <class T = double>
    T *array(const char *name, int64_t size) const {
        auto given = nb::cast<AnyShape<T>>(arrays[name], false);
        fits(int64_t(given.size()) == size, "the arrays of a forecaster differ in size");
        return given.data();
    }

    Settings engine() const {
        Settings s{Grid(number("low"), number("high"), whole("n_bins"))};
        s.property = property_from(settings);
        s.draw_seed = bits("draw_seed");
        s.jitter_seed = bits("jitter_seed");
        s.trust = number("trust");
        s.allowance = number("allowance");
        s.noise = number("noise");
        s.jitter = number("jitter");
        return s;
    }

    Books books() const {
        int64_t m = whole("n_bins"), n = whole("n"), window = whole("window");
        return {array("ledger.sums", m * n), array("ledger.rounding", m), array<int64_t>("ledger.rounds", 2),
                array<uint8_t>("pending.flags", window), array<int64_t>("pending.numbers", 2), n, window};
    }

    template <class Potential>
    std::unique_ptr<AnyEngine> finite(Reader reader, Potential potential) const {
        using E = Finite<Potential>;
        using R = FiniteRecord<Potential>;
        int64_t m = whole("n_bins"), n = whole("n");
        E evidence{potential, array("evidence.sums", m * n), array("evidence.spreads", m * n),
                   array("evidence.weights", m * n), array("evidence.counts", m), n};
        R record{potential, nullptr, nullptr, nullptr, n};
        if (arrays.contains("record.sums")) {
            record = {potential, array("record.sums", m * n), array("record.spreads", m * n),
                      array("record.counts", m), n};
        }
        return std::make_unique<EngineOf<E, R>>(std::move(reader), Engine<E, R>{engine(), evidence, record, books()});
    }

    template <class E>
    std::unique_ptr<AnyEngine> plain(Reader reader, E evidence) const {
        return std::make_unique<EngineOf<E, NoRecord>>(std::move(reader),
                                                       Engine<E, NoRecord>{engine(), evidence, {}, books()});
    }

    template <class Learner>
    std::unique_ptr<AnyEngine> oracle(Reader reader, Learner learner, int64_t n_state) const {
        int64_t m = whole("n_bins"), copies = whole("copies");
        fits(whole("state") == n_state, "a learner's state has another length");
        return plain(std::move(reader),
                     Oracle<Learner>{learner, array("evidence.sums", m * copies),
                                     array("evidence.states", m * copies * n_state), array("evidence.counts", m),
                                     copies, n_state});
    }

    std::unique_ptr<AnyEngine> build() const {
        int64_t n = whole("n"), n_own = whole("n_own"), n_levels = whole("n_levels"), m = whole("n_bins");
        fits(m > 0 && whole("window") > 0 && n_own > 0 && n_levels >= 0 && n_own + n_levels <= n, "a size is wrong");
        Reader reader(n_own, number("radius"), Grid(number("low"), number("high"), n_levels));
        const double *table = arrays.contains("table") ? array<const double>("table", 2 * whole("n_table")) : nullptr;
        std::string kind = nb::cast<std::string>(settings["kind"]);
        if (kind == "AdaNormalHedge") return finite(std::move(reader), AdaNormalHedge{});
        if (kind == "Exponential") return finite(std::move(reader), Exponential{table, whole("n_table")});
        if (kind == "Squint") return finite(std::move(reader), Squint{table, whole("n_table"), number("sqrt_pi")});
        if (kind == "PNorm") return finite(std::move(reader), PNorm{number("exponent")});
        if (kind == "Linear") {
            return plain(std::move(reader), Linear{array("evidence.sums", m * n), array("evidence.counts", m), n});
        }
        if (kind == "GradientDescent") return oracle(std::move(reader), GradientDescent{n}, n + 1);
        if (kind == "MultiplicativeWeights") {
            return oracle(std::move(reader), MultiplicativeWeights{n, number("log_n")}, 2 * n + 1);
        }
        throw std::invalid_argument("there is no kernel for this kind of evidence");
    }
};

}  // namespace swapcal
