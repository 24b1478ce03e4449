// Kernels that go through windows a row at a time: pools, columns and back.
//
// Planes (an image's channel) are shared out between threads; what a plane gets is summed by one of them.
#include <algorithm>
#include <climits>
#include <type_traits>

#include "padded.h"

namespace rl {
namespace {

constexpr long kChoices = 256;  // window elements that a byte can name

// f with the stride of a row as a constant where that makes vectors of it.
template <class F> RL_INLINE void with_stride(long stride, F f) {
    if (stride == 1) f(std::integral_constant<long, 1>());
    else f(stride);
}

template <class F> RL_INLINE void with_two_strides(long stride, F f) {
    if (stride == 2) f(std::integral_constant<long, 2>());
    else with_stride(stride, f);
}

template <class F> void each_plane(const Windows &s, long planes, F f) {
    parallel_for(planes, plane_grain(s), [=](long begin, long end) {
        for (long p = begin; p < end; ++p) f(p);
    });
}

// The first kernel position of dimension d that is not before the input.
long first_inside(const Windows &s, int d, long o) {
    long before = s.pad[d] - o * s.stride[d];
    return before > 0 ? (before + s.dil[d] - 1) / s.dil[d] : 0;
}

// Maxima of a plane: NaN wins, of equal ones the first.
template <class T> struct Maxima : Padded<T> {
    using Padded<T>::s, Padded<T>::place, Padded<T>::at;
    static constexpr long L = kLanes<T>;
    typedef decltype(V<T>() > V<T>()) Numbers;
    V<T> lowest;

    Maxima(const Windows &of, T least) : Padded<T>(of, least), lowest(V<T>{} + least) {}

    // NV vectors of outputs, of whose elements `number` is the first inside.
    template <int NV> RL_MEMBER void best(const T *from, Numbers *number, T *to, uint8_t *which, long count) const {
        V<T> most[NV];
        for (int v = 0; v < NV; ++v) most[v] = lowest;
        const int taps = (int)s.taps();
        for (int tap = 0; tap < taps; ++tap) {
            const T *x = from + place[tap];
#pragma GCC unroll 4
            for (int v = 0; v < NV; ++v) {
                V<T> each = load(x + v * L);
                auto better = (each > most[v]) | (each != each);
                number[v] = better ? Numbers{} + tap : number[v];
                most[v] = better ? each : most[v];
            }
        }
        T values[NV * L];
        std::memcpy(values, most, sizeof values);
        for (long i = 0; i < count; ++i) to[i] = values[i], which[i] = (uint8_t)number[i / L][i % L];
    }

    template <int NV> RL_MEMBER void outputs(const T *from, long x, long tap, T *to, uint8_t *which) const {
        Numbers number[NV];
        for (long i = 0; i < NV * L; ++i) number[i / L][i % L] = tap + first_inside(s, 2, x + i);
        best<NV>(from + x, number, to + x, which + x, std::min(NV * L, s.out[2] - x));
    }

    void run(T *to, uint8_t *which) const {
        for (long z = 0; z < s.out[0]; ++z)
            for (long y = 0; y < s.out[1]; ++y, to += s.out[2], which += s.out[2]) {
                const T *from = at(z, y);
                long x = 0, tap = (first_inside(s, 0, z) * s.k[1] + first_inside(s, 1, y)) * s.k[2];
                for (; x + (kBlock - 1) * L < s.out[2]; x += kBlock * L) outputs<kBlock>(from, x, tap, to, which);
                for (; x < s.out[2]; x += L) outputs<1>(from, x, tap, to, which);
            }
    }
};

template <class T> void max_pool(const Windows &s, const T *x, T *best, uint8_t *which, T lowest) {
    parallel_for(s.C, plane_grain(s), [=, &s](long begin, long end) {
        Maxima<T> plane(s, lowest);
        for (long p = begin; p < end; ++p) {
            plane.copy(x + p * s.area());
            plane.run(best + p * s.length(), which + p * s.length());
        }
    });
}

// f(output, input place) for each output of a plane, by its window element.
template <class F> RL_INLINE void each_choice(const Windows &s, const uint8_t *which, F f) {
    long shift[kChoices], tap = 0, i = 0, area = s.area();
    std::fill(shift, shift + kChoices, LONG_MIN / 2);  // what is no window element chooses nothing
    for (long a = 0; a < s.k[0]; ++a)
        for (long b = 0; b < s.k[1]; ++b)
            for (long c = 0; c < s.k[2]; ++c)
                shift[tap++] = (a * s.dil[0] * s.in[1] + b * s.dil[1]) * s.in[2] + c * s.dil[2];
    for (long z = 0; z < s.out[0]; ++z)
        for (long y = 0; y < s.out[1]; ++y) {
            long row = ((z * s.stride[0] - s.pad[0]) * s.in[1] + y * s.stride[1] - s.pad[1]) * s.in[2] - s.pad[2];
            for (long x = 0; x < s.out[2]; ++x, ++i, row += s.stride[2]) {
                long place = row + shift[which[i]];
                if ((unsigned long)place < (unsigned long)area) f(i, place);
            }
        }
}

template <class T> void pool_scatter(const Windows &s, const T *g, const uint8_t *which, T *x) {
    each_plane(s, s.C, [=, &s](long p) {
        const T *from = g + p * s.length();
        T *to = x + p * s.area();
        std::fill(to, to + s.area(), T(0));
        each_choice(s, which + p * s.length(), [=](long i, long place) { to[place] += from[i]; });
    });
}

template <class T> void pool_gather(const Windows &s, const T *x, const uint8_t *which, T *y) {
    each_plane(s, s.C, [=, &s](long p) {
        const T *from = x + p * s.area();
        T *to = y + p * s.length();
        std::fill(to, to + s.length(), T(0));
        each_choice(s, which + p * s.length(), [=](long i, long place) { to[i] = from[place]; });
    });
}

template <class T> void window_sum(const Windows &s, const T *x, T *y) {
    each_plane(s, s.C, [=, &s](long p) {
        const T *plane = x + p * s.area();
        T *sums = y + p * s.length();
        std::fill(sums, sums + s.length(), T(0));
        with_stride(s.stride[2], [&](auto stride) {
            each_tap(s, [&](long, long out, long in, long n) {
                const T *from = plane + in;
                T *to = sums + out;
#pragma omp simd
                for (long j = 0; j < n; ++j) to[j] += from[j * stride];
            });
        });
    });
}

template <class T> void window_spread(const Windows &s, const T *g, T *x) {
    each_plane(s, s.C, [=, &s](long p) {
        const T *given = g + p * s.length();
        T *plane = x + p * s.area();
        std::fill(plane, plane + s.area(), T(0));
        with_stride(s.stride[2], [&](auto stride) {
            each_tap(s, [&](long, long out, long in, long n) {
                const T *from = given + out;
                T *to = plane + in;
#pragma omp simd
                for (long j = 0; j < n; ++j) to[j * stride] += from[j];
            });
        });
    });
}

// x (N * C, area) -> columns (N * C, taps, L)
template <class T> void im2col(const Windows &s, const T *x, T *y) {
    each_plane(s, s.C, [=, &s](long p) {
        const T *plane = x + p * s.area();
        T *columns = y + p * s.taps() * s.length();
        std::fill(columns, columns + s.taps() * s.length(), T(0));
        with_stride(s.stride[2], [&](auto stride) {
            each_tap(s, [&](long tap, long out, long in, long n) {
                const T *from = plane + in;
                T *to = columns + tap * s.length() + out;
                for (long j = 0; j < n; ++j) to[j] = from[j * stride];
            });
        });
    });
}

template <class T> void col2im(const Windows &s, const T *y, T *x) {
    each_plane(s, s.C, [=, &s](long p) {
        const T *columns = y + p * s.taps() * s.length();
        T *plane = x + p * s.area();
        std::fill(plane, plane + s.area(), T(0));
        with_stride(s.stride[2], [&](auto stride) {
            each_tap(s, [&](long tap, long out, long in, long n) {
                const T *from = columns + tap * s.length() + out;
                T *to = plane + in;
#pragma omp simd
                for (long j = 0; j < n; ++j) to[j * stride] += from[j];
            });
        });
    });
}

}  // namespace
}  // namespace rl

#define TWO(T, S, NAME, FROM, TO)                                                        \
    RL_EXPORT void rl_##NAME##_##S(Array *from_, Array *to_, Array *windows) {           \
        rl::Call call(#NAME);                                                            \
        rl::Windows s(call, windows);                                                    \
        const T *from = call.in<T>(FROM, from_, s.count(FROM));                          \
        T *to = call.out<T>(TO, to_, s.count(TO));                                       \
        call.run([=, &s] { rl::NAME<T>(s, from, to); });                                 \
    }
#define CHOICE(T, S, NAME, FROM, TO)                                                             \
    RL_EXPORT void rl_##NAME##_##S(Array *a_, Array *which_, Array *to_, Array *windows) {       \
        rl::Call call(#NAME);                                                                    \
        rl::Windows s(call, windows);                                                            \
        call.expect(s.taps() <= rl::kChoices, "windows of at most 256 elements");                \
        const T *a = call.in<T>(FROM, a_, s.count(FROM));                                        \
        const uint8_t *which = call.in<uint8_t>("which", which_, s.count("output"));             \
        T *to = call.out<T>(TO, to_, s.count(TO));                                               \
        call.run([=, &s] { rl::NAME<T>(s, a, which, to); });                                     \
    }
#define ALL(T, S)                                                                                           \
    TWO(T, S, window_sum, "input", "output")                                                                \
    TWO(T, S, window_spread, "output", "input")                                                             \
    TWO(T, S, im2col, "input", "columns")                                                                   \
    TWO(T, S, col2im, "columns", "input")                                                                   \
    CHOICE(T, S, pool_scatter, "output", "input")                                                           \
    CHOICE(T, S, pool_gather, "input", "output")                                                            \
    RL_EXPORT void rl_max_pool_##S(Array *x_, Array *best_, Array *which_, Array *windows, double lowest) { \
        rl::Call call("max_pool");                                                                          \
        rl::Windows s(call, windows);                                                                       \
        call.expect(s.taps() <= rl::kChoices, "windows of at most 256 elements");                           \
        call.expect(rl::paddable(s), "planes that can be copied with their padding");                       \
        const T *x = call.in<T>("input", x_, s.count("input"));                                             \
        T *best = call.out<T>("output", best_, s.count("output"));                                          \
        uint8_t *which = call.out<uint8_t>("which", which_, s.count("output"));                             \
        call.run([=, &s] { rl::max_pool<T>(s, x, best, which, (T)lowest); });                               \
    }
RL_BOTH(ALL)
