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
        Settings s{};
        s.property = property_from(settings);
        s.cuts = {number("first"), number("spend"), number("near"), number("near_start"), number("hinted_cut"),
                  number("pair_cut"), number("floor"), number("end"), number("dear"), number("soonest"), number("wide"),
                  nb::cast<bool>(settings["fixed"])};
        s.draw_seed = bits("draw_seed");
        s.jitter_seed = bits("jitter_seed");
        s.trust = number("trust");
        s.follows = nb::cast<bool>(settings["follows"]);
        s.noise = number("noise");
        s.jitter = number("jitter");
        return s;
    }

    Values values() const {
        int64_t m = whole("capacity");
        return {number("low"), number("high"), array("values.by_slot", m), array<int64_t>("values.order", m),
                array("values.ranked", m), array<int64_t>("values.numbers", 1), array("values.gaps", Values::kGap * (m + 1)), m};
    }

    // Over arrays whose number of lines they tell themselves.
    Waiting waiting() const {
        auto shape = nb::cast<AnyShape<double>>(arrays["waiting.entries"], false);
        fits(shape.ndim() == 2, "the table of rounds that wait has two dimensions");
        int64_t n = int64_t(shape.shape(0)), width = int64_t(shape.shape(1));
        int64_t n_scores = whole("n_scores"), n_features = whole("n_features");
        return {array<int64_t>("waiting.whole", n * Waiting::kWholes), array("waiting.numbers", n * Waiting::kNumbers),
                array<uint8_t>("waiting.scores", n * n_scores), array("waiting.features", n * n_features),
                array<int64_t>("waiting.indices", n * width), array("waiting.entries", n * width),
                array<int64_t>("waiting.free", n), array<int64_t>("waiting.counts", 1), width, n_scores, n_features, n};
    }

    Layout layout() const {
        int64_t n_blocks = whole("n_blocks"), n = whole("n");
        if (!n_blocks) return {nullptr, nullptr, n};
        Layout found{array<const int64_t>("blocks", n), array<const int64_t>("edges", n_blocks + 1), n_blocks};
        fits(found.edges[0] == 0 && found.edges[n_blocks] == n, "blocks begin and end elsewhere");
        for (int64_t b = 0; b < n_blocks; ++b) {
            fits(found.edges[b] < found.edges[b + 1], "a block is empty");
            for (int64_t j = found.edges[b]; j < found.edges[b + 1]; ++j) fits(found.block[j] == b, "a block is elsewhere");
        }
        return found;
    }

    Record record() const {
        Layout found = layout();
        return {array("record.sums", whole("n")), array("record.squares", found.n_blocks), array("record.totals", 5),
                number("clean"), found};
    }

    Scale scale() const {
        int64_t n = int64_t(nb::cast<AnyShape<double>>(arrays["scale.sizes"], false).size());
        Scale found{array<int64_t>("scale.since", n), array("scale.sizes", n), array<int64_t>("scale.numbers", 1), n};
        fits(0 < found.numbers[0] && found.numbers[0] <= n, "V has had one size at least");
        return found;
    }

    Books books() const {
        int64_t m = whole("capacity"), n = whole("n"), size = whole("flags");
        return {array("ledger.sums", m * n), array("ledger.rounding", m * n), array("ledger.moved_sums", m * n),
                array("ledger.moved_counts", m), array("ledger.drift", 3),
                array("ledger.totals", Books::kTotals), array<int64_t>("ledger.rounds", 3), array<uint32_t>("pending.flags", size),
                array<int64_t>("pending.numbers", 2), n, size, whole("window")};
    }

    Share share(const std::string &name) const {
        Property property = property_from(settings);
        auto setting = [&](const char *key) { return number((name + key).c_str()); };
        auto all = [&](const char *key, int64_t size) { return array((name + key).c_str(), size); };
        double low = number("domain_low"), part = property.kind == PropertyKind::Quantile ? 1.0 : 0.5;
        int64_t n = int64_t(nb::cast<AnyShape<double>>(arrays[(name + ".blocks").c_str()], false).shape(0));
        fits(0 < n && n <= Share::kMostBlocks, "there are so many blocks at most");
        int64_t n_groups = setting(".tolerance") > 0.0 ? 1 + whole("n") : 0;
        return {{property, part}, low, number("domain_high") - low, setting(".caution"), setting(".budget"),
                setting(".tolerance"), all(".totals", Share::kTotals), all(".blocks", n * Share::kColumns),
                all(".bins", Share::kBins * Share::kBinColumns), all(".likely", Share::kGrid), n,
                all(".groups", n_groups * Share::kGroupColumns), n_groups};
    }

    template <class E>
    std::unique_ptr<AnyEngine> over(Reader reader, E evidence) const {
        auto made = std::make_unique<EngineOf<E>>(std::move(reader),
                                                  Engine<E>{engine(), evidence, values(), record(), scale(), books(),
                                                            {share("share0"), share("share1")},
                                                            nb::cast<bool>(settings["protects"])});
        made->waiting = waiting();
        return made;
    }

    template <class Potential>
    std::unique_ptr<AnyEngine> finite(Reader reader, Potential potential) const {
        int64_t m = whole("capacity"), n = whole("n");
        if constexpr (Potential::exponential) {
            Layout found = layout();
            auto all = [&](const char *name) { return array(name, m * found.n_blocks); };
            if (!found.alone()) {
                return over(std::move(reader),
                            Blocks<Potential>{potential, found, array("evidence.sums", m * n), all("evidence.spreads"),
                                              all("evidence.norms"), all("evidence.factors"), array("evidence.counts", m), n});
            }
        }
        return over(std::move(reader),
                    Finite<Potential>{potential, array("evidence.sums", m * n), array("evidence.spreads", m * n),
                                      array("evidence.weights", m * n), array("evidence.counts", m),
                                      array("evidence.unit", 1), n,
                                      number("norm_radius")});
    }

    std::unique_ptr<AnyEngine> build() const {
        int64_t n = whole("n"), n_own = whole("n_own"), n_levels = whole("n_levels"), m = whole("capacity");
        fits(m > 0 && whole("flags") > 0 && whole("window") >= whole("flags") && n_own > 0 && n_levels >= 0 && n_own + n_levels <= n, "a size is wrong");
        int64_t n_inputs = whole("n_inputs");
        fits(0 <= n_inputs && n_inputs <= n_own, "a size is wrong");
        Reader reader(n_own, n_inputs, number("radius"), Grid(number("low"), number("high"), n_levels));
        const double *table = arrays.contains("table") ? array<const double>("table", 2 * whole("n_table")) : nullptr;
        std::string kind = nb::cast<std::string>(settings["kind"]);
        if (kind == "AdaNormalHedge") return finite(std::move(reader), AdaNormalHedge{});
        if (kind == "Exponential") return finite(std::move(reader), Exponential{table, whole("n_table")});
        if (kind == "Squint") return finite(std::move(reader), Squint{table, whole("n_table"), number("sqrt_pi")});
        if (kind == "PNorm") return finite(std::move(reader), PNorm{number("exponent")});
        if (kind == "Linear") {
            return over(std::move(reader), Linear{array("evidence.sums", m * n), array("evidence.counts", m), n});
        }
        throw std::invalid_argument("there is no kernel for this kind of evidence");
    }
};

}  // namespace swapcal
