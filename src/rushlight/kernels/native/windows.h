// Sliding windows over images (N, C, D, H, W): where each kernel position of each output looks.
#pragma once
#include "common.h"
#include "gemm.h"

#if defined(__AVX512F__)
#include <immintrin.h>  // gathers: compilers think them slow
#endif

namespace rl {

// N images, C channels in, O out, G groups; sizes of three dimensions, unused ones first and 1.
struct Windows {
    int64_t N, C, O, G, in[3], out[3], k[3], stride[3], pad[3], dil[3];

    Windows(Call &call, const Array *a) {
        const int64_t *numbers = call.in<int64_t>("windows", a, sizeof *this / sizeof(int64_t));
        if (numbers) std::memcpy(static_cast<void *>(this), numbers, sizeof *this);
        else *this = Windows();
        call.expect(possible(), "windows whose sizes fit together");
    }
    Windows() : N(1), C(1), O(1), G(1), in{1, 1, 1}, out{1, 1, 1}, k{1, 1, 1}, stride{1, 1, 1}, pad{}, dil{1, 1, 1} {}

    // Whether sizes and channels fit together, and places of window elements, in the padding too, can be counted.
    bool possible() const { return N > 0 && C > 0 && O > 0 && G > 0 && C % G == 0 && O % G == 0 && below(1L << 60); }
    bool countable() const { return below(1L << 28); }  // in 32 bits, with room to spare
    bool below(long most) const {
        bool fine = true;
        for (int d = 0; d < 3; ++d) {
            long reach = elements(out[d], stride[d]), width = elements(k[d], dil[d]);
            fine = fine && in[d] > 0 && reach > 0 && reach < most && width > 0 && width < most && pad[d] >= 0 && pad[d] < most;
        }
        return fine;
    }
    // Elements of the array that is called so.
    long count(const char *name) const {
        switch (name[0]) {
        case 'i': return elements(N, C, in[0], in[1], in[2]);
        case 'o': return elements(N, O, out[0], out[1], out[2]);
        case 'w': return elements(O, C / G, k[0], k[1], k[2]);
        default: return elements(elements(N, C, k[0], k[1], k[2]), out[0], out[1], out[2]);  // columns
        }
    }
    long area() const { return in[0] * in[1] * in[2]; }
    long length() const { return out[0] * out[1] * out[2]; }
    long taps() const { return k[0] * k[1] * k[2]; }
    // Output positions [first, last) of dimension d whose element at kernel position t is inside.
    void inside(int d, long t, long &first, long &last) const {
        long shift = pad[d] - t * dil[d];  // input position = output position * stride - shift
        first = shift > 0 ? (shift + stride[d] - 1) / stride[d] : 0;
        long end = in[d] + shift;
        last = end <= 0 ? 0 : (end + stride[d] - 1) / stride[d];
        if (last > out[d]) last = out[d];
        if (first > last) first = last;
    }
};

// f(output place, input place, n) for each row of outputs whose element at kernel position (a, b, c) is inside; the
// inputs are stride[2] apart.
template <class F> RL_INLINE void each_row(const Windows &s, long a, long b, long c, F f) {
    long z, z_end, y, y_end, x, x_end;
    s.inside(0, a, z, z_end);
    s.inside(1, b, y, y_end);
    s.inside(2, c, x, x_end);
    if (x == x_end) return;
    for (; z < z_end; ++z)
        for (long i = y; i < y_end; ++i) {
            long depth = z * s.stride[0] - s.pad[0] + a * s.dil[0], row = i * s.stride[1] - s.pad[1] + b * s.dil[1];
            long from = (depth * s.in[1] + row) * s.in[2] + x * s.stride[2] - s.pad[2] + c * s.dil[2];
            f((z * s.out[1] + i) * s.out[2] + x, from, x_end - x);
        }
}

// each_row for every kernel position, with its number first.
template <class F> RL_INLINE void each_tap(const Windows &s, F f) {
    for (long a = 0, tap = 0; a < s.k[0]; ++a)
        for (long b = 0; b < s.k[1]; ++b)
            for (long c = 0; c < s.k[2]; ++c, ++tap)
                each_row(s, a, b, c, [&](long out, long in, long n) { f(tap, out, in, n); });
}

// to[l] = x[i[l]], or 0 where i[l] < 0, for the lanes of a vector.
template <class T> RL_MEMBER void gather(const T *x, const int32_t *i, T *to) {
    for (int l = 0; l < kLanes<T>; ++l) to[l] = i[l] >= 0 ? x[i[l]] : T(0);
}
#if defined(__AVX512F__)
template <> RL_MEMBER void gather(const float *x, const int32_t *i, float *to) {
    __m512i at = _mm512_loadu_si512(i);
    __mmask16 in = _mm512_cmpge_epi32_mask(at, _mm512_setzero_si512());
    _mm512_storeu_ps(to, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, at, x, 4));
}
#endif

// For `count` columns (image, output position) from `first` on and each kernel position: the place in a channel,
// counted from image `image`, or -1 in the padding.  Columns come in groups of a vector; `run` is the place of a
// group's first lane where the lanes lie side by side, else kScattered.
template <class T> struct Places {
    static constexpr int kScattered = INT32_MIN;
    long image, count, groups;
    int32_t *at, *run;

    // `identity`: columns are those of images (N, channels, L) themselves.
    void find(const Windows &s, long first, long columns, bool identity, long channels, int32_t *room) {
        constexpr int L = kLanes<T>;
        count = columns;
        groups = (columns + L - 1) / L;
        image = first / s.length();
        long taps = identity ? 1 : s.taps(), lanes = groups * L;
        at = room;
        run = room + taps * lanes;
        int32_t *corner = run + taps * groups;  // four rows: the image's place; where its window starts in z, y, x
        corners(s, first, identity, channels * (identity ? s.length() : s.area()), lanes, corner);
        if (!identity) all_taps(s, lanes, corner);
        for (long i = 0; i < taps * groups; ++i) run[i] = run_of(at + i * L);
    }

    static long room(const Windows &s, long columns) { return (s.taps() * 2 + 4) * ((columns + 127) / 64 * 64); }

    // Row `tap` of the columns' window elements in channel x, groups [begin, end).
    RL_MEMBER void load(const T *x, long tap, long begin, long end, T *to) const {
        constexpr int L = kLanes<T>;
        for (long q = begin; q < end; ++q, to += L) {
            const int32_t *i = at + (tap * groups + q) * L;
            int32_t from = run[tap * groups + q];
            if (from == kScattered) {
                gather(x, i, to);
            } else {
                const T *source = x + from;
#pragma omp simd
                for (int l = 0; l < L; ++l) to[l] = i[l] >= 0 ? source[l] : T(0);
            }
        }
    }

    // The adjoint of load over all groups: adds.
    RL_MEMBER void add(const T *from, long tap, T *x) const {
        constexpr int L = kLanes<T>;
        for (long q = 0; q < groups; ++q, from += L) {
            const int32_t *i = at + (tap * groups + q) * L;
            int32_t to = run[tap * groups + q];
            if (to == kScattered) {
                for (int l = 0; l < L; ++l)
                    if (i[l] >= 0) x[i[l]] += from[l];
            } else {
                T *target = x + to;
#pragma omp simd
                for (int l = 0; l < L; ++l)
                    if (i[l] >= 0) target[l] += from[l];
            }
        }
    }

  private:
    void corners(const Windows &s, long first, bool identity, long image_size, long lanes, int32_t *to) {
        long l = first % s.length(), base = 0, z = l / (s.out[1] * s.out[2]), y = l / s.out[2] % s.out[1];
        for (long j = 0, x = l % s.out[2]; j < lanes; ++j, ++l) {
            if (x == s.out[2]) x = 0, ++y;
            if (y == s.out[1]) y = 0, ++z;
            if (z == s.out[0]) z = 0, l = 0, base += image_size;
            if (identity) at[j] = j < count ? (int32_t)(base + l) : -1;
            to[j] = (int32_t)base;
            to[lanes + j] = j < count ? (int32_t)(z * s.stride[0] - s.pad[0]) : INT32_MIN / 2;
            to[2 * lanes + j] = (int32_t)(y * s.stride[1] - s.pad[1]);
            to[3 * lanes + j] = (int32_t)(x++ * s.stride[2] - s.pad[2]);
        }
    }

    void all_taps(const Windows &s, long lanes, const int32_t *corner) {
        int32_t *to = at;
        uint32_t depth = (uint32_t)s.in[0], height = (uint32_t)s.in[1], width = (uint32_t)s.in[2];
        for (long a = 0; a < s.k[0]; ++a)
            for (long b = 0; b < s.k[1]; ++b)
                for (long c = 0; c < s.k[2]; ++c, to += lanes) {
                    int32_t dz = (int32_t)(a * s.dil[0]), dy = (int32_t)(b * s.dil[1]), dx = (int32_t)(c * s.dil[2]);
#pragma omp simd
                    for (long j = 0; j < lanes; ++j) {
                        int32_t z = corner[lanes + j] + dz, y = corner[2 * lanes + j] + dy, x = corner[3 * lanes + j] + dx;
                        bool in = ((uint32_t)z < depth) & ((uint32_t)y < height) & ((uint32_t)x < width);
                        uint32_t place = (uint32_t)corner[j] + ((uint32_t)z * height + (uint32_t)y) * width + (uint32_t)x;
                        to[j] = in ? (int32_t)place : -1;
                    }
                }
    }

    static int32_t run_of(const int32_t *i) {
        constexpr int L = kLanes<T>;
        int32_t from = INT32_MIN;
#pragma omp simd reduction(max : from)
        for (int l = 0; l < L; ++l) {
            int32_t start = i[l] < 0 ? INT32_MIN : i[l] - l;
            from = start > from ? start : from;
        }
        int32_t apart = 0;
#pragma omp simd reduction(| : apart)
        for (int l = 0; l < L; ++l) apart |= (i[l] >= 0) & (i[l] - l != from);
        return apart ? kScattered : from == INT32_MIN ? 0 : from;
    }
};

}  // namespace rl
