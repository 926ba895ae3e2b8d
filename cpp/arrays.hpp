// NumPy arrays as the bindings take them: never copied, one entry after the other in memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace swapcal {

namespace nb = nanobind;

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using AnyShape = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

// An array of Python's own.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> owned(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return {kept->data(), {kept->size()}, owner};
}

inline void fits(bool holds, const char *message = "the arrays of a run differ in length") {
    if (!holds) throw std::invalid_argument(message);
}

}  // namespace swapcal
