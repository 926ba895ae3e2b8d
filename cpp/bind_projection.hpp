// Python's view of MsMwC's projection: vectors in, a fresh pair of vectors out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "projection.hpp"

namespace swapcal {

namespace projection_binding {

namespace nb = nanobind;

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline nb::ndarray<nb::numpy, double, nb::ndim<1>> owned(std::unique_ptr<double[]> values, size_t n) {
    double *data = values.release();
    nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
    return {data, {n}, owner};
}

}  // namespace projection_binding

inline void bind_projection(nanobind::module_ &m) {
    namespace nb = nanobind;
    using namespace projection_binding;

    // (weights, log_weights, multiplier, iterations) of the step.
    m.def("msmwc_project", [](Numbers weights, Numbers log_weights, Numbers gradient, Numbers rates, double floor) {
        size_t n = weights.shape(0);
        if (n == 0 || log_weights.shape(0) != n || gradient.shape(0) != n || rates.shape(0) != n) {
            throw std::invalid_argument("weights, logarithms, gradient and rates must be as long as each other");
        }
        std::unique_ptr<double[]> result(new double[n]), log_result(new double[n]), room(new double[n]);
        Projection step{weights.data(), log_weights.data(), gradient.data(),  rates.data(), int64_t(n), floor,
                        result.get(),   log_result.get(),   room.get()};
        {
            nb::gil_scoped_release released;
            step.run();
        }
        return nb::make_tuple(owned(std::move(result), n), owned(std::move(log_result), n), step.multiplier,
                              step.iterations);
    });
}

}  // namespace swapcal
