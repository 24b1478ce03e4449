// Convolution where each group is one channel: O / C outputs of each.
#include "padded.h"

namespace rl {
namespace {

// Sums over the kernel positions of a plane, in registers.
template <class T> struct Plane : Padded<T> {
    using Padded<T>::s, Padded<T>::place, Padded<T>::at;
    explicit Plane(const Windows &of) : Padded<T>(of, T(0)) {}

    // NV vectors of sums over the kernel positions.
    template <int NV> RL_MEMBER void sums(const T *from, const T *weights, T *to, long count, bool add) const {
        constexpr int L = kLanes<T>;
        V<T> sum[NV];
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) sum[v] = V<T>{};
        for (long tap = 0, taps = s.taps(); tap < taps; ++tap) {
            const T *x = from + place[tap], w = weights[tap];
#pragma GCC unroll 4
            for (int v = 0; v < NV; ++v) sum[v] += w * load(x + v * L);
        }
        T lanes[NV * L];
        std::memcpy(lanes, sum, sizeof lanes);
        for (long i = 0; i < count; ++i) to[i] = add ? to[i] + lanes[i] : lanes[i];
    }

    void conv(const T *weights, T *to, bool add) const {
        constexpr int L = kLanes<T>;
        for (long z = 0; z < s.out[0]; ++z)
            for (long y = 0; y < s.out[1]; ++y, to += s.out[2]) {
                const T *from = at(z, y);
                long x = 0;
                for (; x + (kBlock - 1) * L < s.out[2]; x += kBlock * L)
                    sums<kBlock>(from + x, weights, to + x, std::min<long>(kBlock * L, s.out[2] - x), add);
                for (; x < s.out[2]; x += L) sums<1>(from + x, weights, to + x, std::min<long>(L, s.out[2] - x), add);
            }
    }

    // Adds to each kernel position the product of its elements with the outputs' gradients.
    void correlate(const T *given, T *weights) const {
        constexpr int L = kLanes<T>;
        const long wide = (s.out[2] + L - 1) / L * L, rows = s.out[0] * s.out[1];
        T *g = scratch<T, 2>(rows * wide);
        std::fill(g, g + rows * wide, T(0));
        V<T> index;
        for (int i = 0; i < L; ++i) index[i] = T(i);
        const auto inside = index < V<T>{} + T(s.out[2] - (wide - L));  // of the last vector of a row: behind it all may lie, NaN too
        for (long r = 0; r < rows; ++r) std::copy(given + r * s.out[2], given + (r + 1) * s.out[2], g + r * wide);
        for (long tap = 0, taps = s.taps(); tap < taps; ++tap) {
            V<T> sum = V<T>{};
            const T *left = g;
            for (long z = 0; z < s.out[0]; ++z)
                for (long y = 0; y < s.out[1]; ++y) {
                    const T *right = at(z, y) + place[tap];
                    for (long x = 0; x < wide - L; x += L, left += L) sum += load(left) * load(right + x);
                    sum += load(left) * (inside ? load(right + wide - L) : V<T>{});
                    left += L;
                }
            T lanes[L], total = 0;
            std::memcpy(lanes, &sum, sizeof lanes);
            for (int i = 0; i < L; ++i) total += lanes[i];
            weights[tap] += total;
        }
    }
};

template <class T> void channel_conv(const Windows &s, const T *x, const T *w, T *y) {
    const long each = s.O / s.C;
    parallel_for(s.N * s.C, plane_grain(s), [=, &s](long begin, long end) {
        Plane<T> padded(s);
        for (long p = begin; p < end; ++p) {
            padded.copy(x + p * s.area());
            for (long o = p * each; o < (p + 1) * each; ++o) padded.conv(w + o % s.O * s.taps(), y + o * s.length(), false);
        }
    });
}

// The windows of the input's gradient, whose kernel is turned round: of stride 1.
Windows turned(const Windows &s) {
    Windows t = s;
    std::swap(t.C, t.O);
    for (int d = 0; d < 3; ++d) {
        std::swap(t.in[d], t.out[d]);
        t.pad[d] = (s.k[d] - 1) * s.dil[d] - s.pad[d];
    }
    return t;
}

template <class T> void turned_conv(const Windows &s, const T *g, const T *w, T *x) {
    const Windows t = turned(s);
    const long each = s.O / s.C, taps = s.taps();
    parallel_for(s.N * s.C, plane_grain(s), [=, &s, &t](long begin, long end) {
        Plane<T> padded(t);
        T *weights = scratch<T, 2>(taps);
        for (long p = begin; p < end; ++p)
            for (long i = 0; i < each; ++i) {
                const long o = p % s.C * each + i;
                std::reverse_copy(w + o * taps, w + (o + 1) * taps, weights);
                padded.copy(g + (p / s.C * s.O + o) * s.length());
                padded.conv(weights, x + p * s.area(), i > 0);
            }
    });
}

// The gradient of strides over 1: each output's part is added where it came from.
template <class T> void spread_conv(const Windows &s, const T *g, const T *w, T *x) {
    const long each = s.O / s.C;
    parallel_for(s.N * s.C, plane_grain(s), [=, &s](long begin, long end) {
        for (long p = begin; p < end; ++p) {
            T *plane = x + p * s.area();
            std::fill(plane, plane + s.area(), T(0));
            for (long o = p % s.C * each; o < (p % s.C + 1) * each; ++o) {
                const T *given = g + (p / s.C * s.O + o) * s.length(), *weights = w + o * s.taps();
                each_tap(s, [&](long tap, long out, long in, long n) {
                    const T *from = given + out, by = weights[tap];
                    T *to = plane + in;
#pragma omp simd
                    for (long j = 0; j < n; ++j) to[j * s.stride[2]] += by * from[j];
                });
            }
        }
    });
}

template <class T> void channel_conv_input(const Windows &s, const T *g, const T *w, T *x) {
    bool dense = true;
    for (int d = 0; d < 3; ++d) dense = dense && s.stride[d] == 1 && s.pad[d] <= (s.k[d] - 1) * s.dil[d];
    if (dense) turned_conv(s, g, w, x);
    else spread_conv(s, g, w, x);
}

template <class T> void channel_conv_weight(const Windows &s, const T *g, const T *x, T *w) {
    const long each = s.O / s.C;
    parallel_for(s.C, 1, [=, &s](long begin, long end) {
        Plane<T> padded(s);
        for (long c = begin; c < end; ++c) {
            std::fill(w + c * each * s.taps(), w + (c + 1) * each * s.taps(), T(0));
            for (long image = 0; image < s.N; ++image) {
                padded.copy(x + (image * s.C + c) * s.area());
                for (long o = c * each; o < (c + 1) * each; ++o)
                    padded.correlate(g + (image * s.O + o) * s.length(), w + o * s.taps());
            }
        }
    });
}

}  // namespace
}  // namespace rl

#define THREE(T, S, NAME, A, B, TO)                                                      \
    RL_EXPORT void rl_##NAME##_##S(Array *a_, Array *b_, Array *to_, Array *windows) {   \
        rl::Call call(#NAME);                                                            \
        rl::Windows s(call, windows);                                                    \
        call.expect(s.C == s.G, "groups of one channel");                                \
        call.expect(rl::paddable(s), "planes that can be copied with their padding");    \
        const T *a = call.in<T>(A, a_, s.count(A)), *b = call.in<T>(B, b_, s.count(B));  \
        T *to = call.out<T>(TO, to_, s.count(TO));                                       \
        call.run([=, &s] { rl::NAME<T>(s, a, b, to); });                                 \
    }
#define ALL(T, S)                                                                        \
    THREE(T, S, channel_conv, "input", "weight", "output")                               \
    THREE(T, S, channel_conv_input, "output", "weight", "input")                         \
    THREE(T, S, channel_conv_weight, "output", "input", "weight")
RL_BOTH(ALL)
