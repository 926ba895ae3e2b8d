// Twin of safe_exp.py: sums and products in a stated order, so that bits agree and loops become vector code.
#pragma once

#include <cstdint>
#include <cstring>

// On x86 with the GNU loader, loops marked so are compiled three times, and the machine picks. Bits are the same: AVX2
// and AVX-512 bring wider vectors, and fused multiply-adds stay off.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define SWAPCAL_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SWAPCAL_VECTORIZED
#endif

namespace swapcal {

inline double safe_exp(double a) {
    double held = a > -700.0 ? a : -700.0;
    held = held < 300.0 ? held : 300.0;
    double shifted = held * 0x1.71547652b82fep+0 + 0x1.8p52;
    double k = shifted - 0x1.8p52;
    double r = (held - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    double series = 0x1.af631d0059becp-26;
    series = series * r + 0x1.28b4057f44145p-22;
    series = series * r + 0x1.71ddf5749d126p-19;
    series = series * r + 0x1.a01991ac8730ap-16;
    series = series * r + 0x1.a01a01b14378fp-13;
    series = series * r + 0x1.6c16c187fbe02p-10;
    series = series * r + 0x1.111111110f225p-7;
    series = series * r + 0x1.555555554f0cfp-5;
    series = series * r + 0x1.555555555555ap-3;
    series = series * r + 0x1.0000000000011p-1;
    series = series * r + 0x1.0000000000000p+0;
    series = series * r + 0x1.0000000000000p+0;
    uint64_t bits;
    std::memcpy(&bits, &shifted, 8);
    bits = (bits + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, 8);
    double beyond = a - 300.0;
    return series * power * (1.0 + (beyond > 0.0 ? beyond : 0.0));
}

// sinh for |z| <= 1.
inline double short_sinh(double z) {
    double square = z * z;
    double series = 1.0 / 355687428096000.0;
    series = series * square + 1.0 / 1307674368000.0;
    series = series * square + 1.0 / 6227020800.0;
    series = series * square + 1.0 / 39916800.0;
    series = series * square + 1.0 / 362880.0;
    series = series * square + 1.0 / 5040.0;
    series = series * square + 1.0 / 120.0;
    series = series * square + 1.0 / 6.0;
    series = series * square + 1.0;
    return series * z;
}

}  // namespace swapcal
