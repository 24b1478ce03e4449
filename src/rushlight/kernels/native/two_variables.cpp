// Functions of two numbers: logarithms of sums, lengths, signs.  `n` pairs, any shape; the output may be an input.
#include "maps.h"

namespace rl {

template <class T> RL_INLINE T logaddexp2(T x, T y) {
    return choose(x > y, x, y) + T(1.44269504088896340736) * log1p_small(rl::exp2(-apart(x, y)));
}

// Infinite where either is, even beside NaN.
template <class T> RL_INLINE T length(T x, T y, T root) {
    return choose((std::fabs(x) == infinity<T>()) | (std::fabs(y) == infinity<T>()), infinity<T>(), root);
}

RL_INLINE float hypot(float x, float y) {
    double a = x, b = y;
    return length(x, y, (float)std::sqrt(a * a + b * b));
}

// Scaled where squares would leave the range of numbers.
RL_INLINE double hypot(double x, double y) {
    double a = std::fabs(x), b = std::fabs(y);
    bool large = (a > 0x1p500) | (b > 0x1p500), small = (a < 0x1p-500) & (b < 0x1p-500);
    double scale = large ? 0x1p-600 : small ? 0x1p600 : 1.0, back = large ? 0x1p600 : small ? 0x1p-600 : 1.0;
    a *= scale, b *= scale;
    return length(x, y, std::sqrt(a * a + b * b) * back);
}

template <class T> struct BitsOf {
    typedef uint32_t type;
};
template <> struct BitsOf<double> {
    typedef uint64_t type;
};

// Numbers of one sign are in the order of their bits.
template <class T> RL_INLINE T nextafter(T x, T y) {
    typedef typename BitsOf<T>::type Bits;
    const Bits step = (x < y) == (x > 0) ? Bits(1) : Bits(-1);
    T moved = bits<T>(Bits(bits<Bits>(x) + step)), first = std::copysign(std::numeric_limits<T>::denorm_min(), y);
    T out = choose(x == T(0), first, moved);
    out = choose(x == y, y, out);
    return choose((x != x) | (y != y), x + y, out);
}

}  // namespace rl

#define PAIR(NAME, U, S, EXPR)                                                                    \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *y_, Array *o_, long n) {                     \
        rl::Call call(#NAME);                                                                     \
        using T = rl::WideOf<U>;                                                                  \
        const U *x = call.pair_in<U>("input", x_, n), *y = call.pair_in<U>("other", y_, n);       \
        U *o = call.pair_out<U>("out", o_, n);                                                    \
        call.run([=] { rl::map2(x, y, o, n, [](T a, T b) __attribute__((always_inline)) -> T { return EXPR; }); }); \
    }
#define ALL(U, S)                                   \
    PAIR(logaddexp, U, S, rl::logaddexp(a, b))      \
    PAIR(logaddexp2, U, S, rl::logaddexp2(a, b))    \
    PAIR(hypot, U, S, rl::hypot(a, b))              \
    PAIR(copysign, U, S, std::copysign(a, b))
RL_ALL(ALL)
// Of 16 bits the next number is none of float32.
PAIR(nextafter, float, f32, rl::nextafter(a, b))
PAIR(nextafter, double, f64, rl::nextafter(a, b))
