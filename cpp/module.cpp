// swapcal._native: kernels over the NumPy arrays that Python owns. The Python twins beside them are the specification.
#include <nanobind/nanobind.h>

#include "bind_audit.hpp"
#include "bind_engine.hpp"
#include "bind_regression.hpp"

NB_MODULE(_native, m) {
    m.doc() = "Compiled twins of the loops that a profile named; they hold no state of their own.";
    swapcal::bind_engine(m);
    swapcal::bind_regression(m);
    swapcal::bind_audit(m);
}
