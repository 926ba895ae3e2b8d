// Reads NumPy vectors through NumPy's own headers: a general import of an array costs as much as half a round.
#pragma once

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <nanobind/nanobind.h>
#include <numpy/ndarraytypes.h>

#include <cstdint>

namespace swapcal {

class PlainArrays {
  public:
    PlainArrays() {
        nanobind::module_ numpy = nanobind::module_::import_("numpy");
        array_ = numpy.attr("ndarray");
        number_ = numpy.attr("dtype")("float64");
    }

    // The entries of a vector of n doubles, one after the other in memory; null for anything else. Subclasses of arrays
    // are something else: they may hide entries behind a mask.
    const double *vector(nanobind::handle x, int64_t n) const {
        if (Py_TYPE(x.ptr()) != reinterpret_cast<PyTypeObject *>(array_.ptr())) return nullptr;
        PyArrayObject *array = reinterpret_cast<PyArrayObject *>(x.ptr());
        bool plain = PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == n &&
                     reinterpret_cast<PyObject *>(PyArray_DESCR(array)) == number_.ptr() &&
                     PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
        return plain ? static_cast<const double *>(PyArray_DATA(array)) : nullptr;
    }

  private:
    nanobind::object array_, number_;
};

}  // namespace swapcal
