// One of two elements, as a mask says, of any width: elements are moved, never computed with.
#include <algorithm>

#include "common.h"

namespace rl {
namespace {

struct Wide {  // a complex number of two doubles
    uint64_t low, high;
};

inline Wide pick(bool yes, Wide a, Wide b) { return {yes ? a.low : b.low, yes ? a.high : b.high}; }
template <class T> RL_INLINE T pick(bool yes, T a, T b) {
    const T all = (T)-(T)yes;  // without a branch, which masks at random would have the processor guess
    return (T)((a & all) | (b & (T)~all));
}

// `repeats` times `count` elements, the mask for `count`; Step: 0 where one element stands for all of a or b.
template <class T, int A, int B>
void choose(const uint8_t *mask, const T *a, const T *b, T *o, long repeats, long count) {
    parallel_for(repeats * count, kGrain, [=](long begin, long end) {
        for (long at = begin; at < end;) {
            const long first = at % count, size = std::min(count - first, end - at);
            const uint8_t *which = mask + first;
            const T *x = a + A * at, *y = b + B * at;
            T *to = o + at;
#pragma omp simd
            for (long i = 0; i < size; ++i) to[i] = pick(which[i] != 0, x[A * i], y[B * i]);
            at += size;
        }
    });
}

template <class T>
void choose_of(const uint8_t *mask, const void *a, const void *b, void *o, long repeats, long count, bool one_a, bool one_b) {
    const T *x = static_cast<const T *>(a), *y = static_cast<const T *>(b);
    T *to = static_cast<T *>(o);
    if (one_a && one_b) choose<T, 0, 0>(mask, x, y, to, repeats, count);
    else if (one_a) choose<T, 0, 1>(mask, x, y, to, repeats, count);
    else if (one_b) choose<T, 1, 0>(mask, x, y, to, repeats, count);
    else choose<T, 1, 1>(mask, x, y, to, repeats, count);
}

// Of each row of matrices what lies on one side of a diagonal, and zeros on the other; rows are `width` bytes an element.
void triangle(const uint8_t *x, uint8_t *o, long rows, long R, long C, long width, long diagonal, bool upper) {
    parallel_for(rows, row_grain(C * width / 4), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const long cut = width * std::min(std::max(r % R + diagonal + !upper, 0L), C), all = C * width;
            const uint8_t *from = x + r * all;
            uint8_t *to = o + r * all;
            std::memset(upper ? to : to + cut, 0, upper ? cut : all - cut);
            std::memcpy(upper ? to + cut : to, upper ? from + cut : from, upper ? all - cut : cut);
        }
    });
}

}  // namespace
}  // namespace rl

RL_EXPORT void rl_choose_bytes(Array *mask_, Array *a_, Array *b_, Array *o_, long repeats, long count, long width, long of_a, long of_b) {
    rl::Call call("choose");
    const uint8_t *mask = call.in<uint8_t>("mask", mask_, count);
    const uint8_t *a = call.in<uint8_t>("input", a_, of_a, width), *b = call.in<uint8_t>("other", b_, of_b, width);
    uint8_t *o = call.out<uint8_t>("out", o_, repeats, count, width);
    const bool one_a = of_a == 1, one_b = of_b == 1;
    call.run([=] {
        if (width == 1) rl::choose_of<uint8_t>(mask, a, b, o, repeats, count, one_a, one_b);
        else if (width == 2) rl::choose_of<uint16_t>(mask, a, b, o, repeats, count, one_a, one_b);
        else if (width == 4) rl::choose_of<uint32_t>(mask, a, b, o, repeats, count, one_a, one_b);
        else if (width == 8) rl::choose_of<uint64_t>(mask, a, b, o, repeats, count, one_a, one_b);
        else rl::choose_of<rl::Wide>(mask, a, b, o, repeats, count, one_a, one_b);
    });
}

RL_EXPORT void rl_triangle_bytes(Array *x_, Array *o_, long count, long R, long C, long width, long diagonal, int upper) {
    rl::Call call("triangle");
    const uint8_t *x = call.in<uint8_t>("input", x_, count, R, C, width);
    uint8_t *o = call.out<uint8_t>("out", o_, count, R, C, width);
    call.expect(diagonal >= -R && diagonal <= C, "a diagonal of the matrix");
    call.run([=] { rl::triangle(x, o, count * R, R, C, width, diagonal, upper); });
}
