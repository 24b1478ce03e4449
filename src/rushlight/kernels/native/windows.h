// Sliding windows over images (N, C, D, H, W): where each kernel position of each output looks.
#pragma once
#include "common.h"
#include "gemm.h"

#if defined(__AVX2__)
#include <immintrin.h>  // gathers and lanes that are left out: compilers think them slow
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
        for (int d = 0; d < 3; ++d) {
            const long reach = elements(out[d], stride[d]), width = elements(k[d], dil[d]);
            if (in[d] < 1 || reach < 1 || reach >= most || width < 1 || width >= most || pad[d] < 0 || pad[d] >= most) return false;
        }
        return true;
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
    long work() const { return N * O * length() * (C / G) * taps() + 16 * (N * C * area() + N * O * length() + O * (C / G) * taps()); }  // a number as 16 products
    // Whether some windows reach beyond the input, before it or behind.
    bool outside() const {
        bool any = false;
        for (int d = 0; d < 3; ++d) any = any || pad[d] || (out[d] - 1) * stride[d] + (k[d] - 1) * dil[d] >= in[d];
        return any;
    }
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

constexpr int32_t kOutside = INT32_MIN / 2;  // the place of what lies in the padding: apart from every place, and so that differences stay in range

// to[l] = x[i[l]], or 0 where i[l] is kOutside, for the lanes of a vector.
template <class T> RL_MEMBER void gather(const T *x, const int32_t *i, T *to) {
    for (int l = 0; l < kLanes<T>; ++l) to[l] = i[l] != kOutside ? x[i[l]] : T(0);
}

// The adjoint: adds.
template <class T> RL_MEMBER void scatter(const T *from, const int32_t *i, T *x) {
    for (int l = 0; l < kLanes<T>; ++l)
        if (i[l] != kOutside) x[i[l]] += from[l];
}

// Both where i[l] is low + every * l in some lanes, high + every * l in the others: rows of images end within a vector.
template <class T, int every> struct TwoRuns {
    static void load(const T *x, const int32_t *i, int32_t, int32_t, T *to) { gather(x, i, to); }
    static void add(const T *from, const int32_t *i, int32_t, int32_t, T *x) { scatter(from, i, x); }
};

#if defined(__AVX512F__) && defined(__BMI2__)
template <> RL_MEMBER void gather(const float *x, const int32_t *i, float *to) {
    __m512i at = _mm512_loadu_si512(i);
    __mmask16 in = _mm512_cmpneq_epi32_mask(at, _mm512_set1_epi32(kOutside));
    _mm512_storeu_ps(to, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, at, x, 4));
}

template <int every> struct TwoRuns<float, every> {
    __mmask16 first, later;

    RL_MEMBER TwoRuns(const int32_t *i, int32_t high) {
        const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), at = _mm512_loadu_si512(i);
        const __m512i ahead = _mm512_add_epi32(_mm512_mullo_epi32(lane, _mm512_set1_epi32(every)), _mm512_set1_epi32(high));
        const __mmask16 in = _mm512_cmpneq_epi32_mask(at, _mm512_set1_epi32(kOutside));
        later = _mm512_mask_cmpeq_epi32_mask(in, at, ahead);
        first = (__mmask16)(in & ~later);
    }
    // Every second element has a lane of its own.
    static RL_MEMBER uint32_t apart(__mmask16 lanes) { return _pdep_u32(lanes, 0x55555555); }

    static RL_MEMBER __m512 some(const float *x, __mmask16 lanes) {
        if constexpr (every == 1) return _mm512_maskz_loadu_ps(lanes, x);
        const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        const __m512 near = _mm512_maskz_loadu_ps((__mmask16)apart(lanes), x);
        return _mm512_permutex2var_ps(near, even, _mm512_maskz_loadu_ps((__mmask16)(apart(lanes) >> 16), x + 16));
    }
    static RL_MEMBER void add_where(float *x, __mmask16 lanes, __m512 more) {
        _mm512_mask_storeu_ps(x, lanes, _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, x), more));
    }
    static RL_MEMBER void add_some(float *x, __mmask16 lanes, __m512 more) {
        if constexpr (every == 1) return add_where(x, lanes, more);
        const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
        add_where(x, (__mmask16)apart(lanes), _mm512_permutexvar_ps(twice, more));
        const __m512i farther = _mm512_add_epi32(twice, _mm512_set1_epi32(8));
        add_where(x + 16, (__mmask16)(apart(lanes) >> 16), _mm512_permutexvar_ps(farther, more));
    }
    static RL_MEMBER void load(const float *x, const int32_t *i, int32_t low, int32_t high, float *to) {
        const TwoRuns lanes(i, high);
        _mm512_storeu_ps(to, _mm512_or_ps(some(x + low, lanes.first), some(x + high, lanes.later)));
    }
    static RL_MEMBER void add(const float *from, const int32_t *i, int32_t low, int32_t high, float *x) {
        const TwoRuns lanes(i, high);
        const __m512 more = _mm512_loadu_ps(from);
        add_some(x + low, lanes.first, more);
        add_some(x + high, lanes.later, more);
    }
};
#elif defined(__AVX2__)
template <int every> struct TwoRuns<float, every> {
    __m256i first, later;

    RL_MEMBER TwoRuns(const int32_t *i, int32_t high) {
        const __m256i lane = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), at = _mm256_loadu_si256((const __m256i *)i);
        const __m256i ahead = _mm256_add_epi32(_mm256_mullo_epi32(lane, _mm256_set1_epi32(every)), _mm256_set1_epi32(high));
        const __m256i in = _mm256_cmpgt_epi32(at, _mm256_set1_epi32(kOutside));
        later = _mm256_and_si256(in, _mm256_cmpeq_epi32(at, ahead));
        first = _mm256_andnot_si256(later, in);
    }
    // Every second element has a lane of its own.
    static RL_MEMBER __m256i apart(__m128i lanes) {
        return _mm256_and_si256(_mm256_cvtepi32_epi64(lanes), _mm256_set1_epi64x(0xffffffff));
    }
    static RL_MEMBER __m256i near(__m256i lanes) { return apart(_mm256_castsi256_si128(lanes)); }
    static RL_MEMBER __m256i far(__m256i lanes) { return apart(_mm256_extracti128_si256(lanes, 1)); }

    static RL_MEMBER __m256 some(const float *x, __m256i lanes) {
        if constexpr (every == 1) return _mm256_maskload_ps(x, lanes);
        const __m256 both = _mm256_shuffle_ps(_mm256_maskload_ps(x, near(lanes)), _mm256_maskload_ps(x + 8, far(lanes)), 0x88);
        return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(both), 0xd8));
    }
    static RL_MEMBER void add_where(float *x, __m256i lanes, __m256 more) {
        _mm256_maskstore_ps(x, lanes, _mm256_add_ps(_mm256_maskload_ps(x, lanes), more));
    }
    static RL_MEMBER void add_some(float *x, __m256i lanes, __m256 more) {
        if constexpr (every == 1) return add_where(x, lanes, more);
        add_where(x, near(lanes), _mm256_permutevar8x32_ps(more, _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0)));
        add_where(x + 8, far(lanes), _mm256_permutevar8x32_ps(more, _mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4)));
    }
    static RL_MEMBER void load(const float *x, const int32_t *i, int32_t low, int32_t high, float *to) {
        const TwoRuns lanes(i, high);
        _mm256_storeu_ps(to, _mm256_or_ps(some(x + low, lanes.first), some(x + high, lanes.later)));
    }
    static RL_MEMBER void add(const float *from, const int32_t *i, int32_t low, int32_t high, float *x) {
        const TwoRuns lanes(i, high);
        const __m256 more = _mm256_loadu_ps(from);
        add_some(x + low, lanes.first, more);
        add_some(x + high, lanes.later, more);
    }
};
#endif

// For `count` columns (image, output position) from `first` on: where their windows begin in a channel, counted from image `image`, once
// for each kernel position, since some of them lie in the padding (kOutside), or once for all.  Columns come in groups of a vector, most
// of which lie side by side (or, with stride 2, every second) in one row or in two: lane l at high + every * l, or else low + every * l.
template <class T> struct Places {
    static constexpr int kScattered = INT32_MIN;  // as `high`: neither
    struct Run {
        int32_t low, high;
    };
    long image, count, groups;
    bool padded;
    int every;
    int32_t *at, *ahead;  // of each kernel position, how far it is from the window's first
    Run *run;

    // `identity`: columns are those of images (N, channels, L) themselves.
    void find(const Windows &s, long first, long columns, bool identity, long channels, int32_t *room) {
        constexpr int L = kLanes<T>;
        count = columns;
        groups = (columns + L - 1) / L;
        image = first / s.length();
        padded = !identity && s.outside();
        every = identity || s.stride[2] != 2 ? 1 : 2;
        long taps = identity ? 1 : s.taps(), lanes = groups * L;
        run = reinterpret_cast<Run *>(room);
        ahead = room + 2 * groups;
        at = ahead + taps;
        int32_t *corner = at + (padded ? taps : 1) * lanes;  // four rows: the place; where its window starts in z, y, x
        corners(s, first, identity, channels * (identity ? s.length() : s.area()), lanes, corner);
        for (long q = 0; q < groups; ++q) run[q] = run_of(corner + q * L, every);
        if (padded) all_taps(s, lanes, corner);
        else std::memcpy(at, corner, lanes * sizeof *at);
        ahead[0] = 0;
        for (long tap = 1; tap < taps; ++tap) ahead[tap] = distance(s, tap);
    }

    static long room(const Windows &s, long columns) { return s.taps() + (s.taps() + 8) * ((columns + 127) / 64 * 64); }

    // Row `tap` of the columns' window elements in channel x, groups [begin, end).
    RL_MEMBER void load(const T *x, long tap, long begin, long end, T *to) const {
        constexpr int L = kLanes<T>;
        const int32_t *i = at + (padded ? tap * groups + begin : begin) * L;
        x += ahead[tap];
        for (long q = begin; q < end; ++q, to += L, i += L) {
            const Run from = run[q];
            if (from.high == kScattered) {
                gather(x, i, to);
            } else if (every == 2) {
                TwoRuns<T, 2>::load(x, i, from.low, from.high, to);
            } else if (from.low != from.high) {
                TwoRuns<T, 1>::load(x, i, from.low, from.high, to);
            } else {
                const T *source = x + from.high;
#pragma omp simd
                for (int l = 0; l < L; ++l) to[l] = i[l] != kOutside ? source[l] : T(0);
            }
        }
    }

    // The adjoint of load over all groups: adds.
    RL_MEMBER void add(const T *from, long tap, T *x) const {
        constexpr int L = kLanes<T>;
        const int32_t *i = at + (padded ? tap * groups : 0) * L;
        x += ahead[tap];
        for (long q = 0; q < groups; ++q, from += L, i += L) {
            const Run to = run[q];
            if (to.high == kScattered) {
                scatter(from, i, x);
            } else if (every == 2) {
                TwoRuns<T, 2>::add(from, i, to.low, to.high, x);
            } else if (to.low != to.high) {
                TwoRuns<T, 1>::add(from, i, to.low, to.high, x);
            } else {
                T *target = x + to.high;
#pragma omp simd
                for (int l = 0; l < L; ++l)
                    if (i[l] != kOutside) target[l] += from[l];
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
            long depth = z * s.stride[0] - s.pad[0], row = y * s.stride[1] - s.pad[1], column = x++ * s.stride[2] - s.pad[2];
            long place = base + (identity ? l : (depth * s.in[1] + row) * s.in[2] + column);
            to[j] = j < count ? (int32_t)place : kOutside;
            to[lanes + j] = j < count ? (int32_t)depth : INT32_MIN / 2;
            to[2 * lanes + j] = (int32_t)row;
            to[3 * lanes + j] = (int32_t)column;
        }
    }

    static int32_t distance(const Windows &s, long tap) {
        long c = tap % s.k[2], b = tap / s.k[2] % s.k[1], a = tap / s.k[2] / s.k[1];
        return (int32_t)((a * s.dil[0] * s.in[1] + b * s.dil[1]) * s.in[2] + c * s.dil[2]);
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
                        to[j] = in ? corner[j] : kOutside;
                    }
                }
    }

    static Run run_of(const int32_t *i, int every) {
        constexpr int L = kLanes<T>;
        int32_t high = INT32_MIN, low = INT32_MAX, apart = 0;
#pragma omp simd reduction(max : high) reduction(min : low)
        for (int l = 0; l < L; ++l) {
            int32_t start = i[l] - every * l;
            high = i[l] != kOutside && start > high ? start : high;
            low = i[l] != kOutside && start < low ? start : low;
        }
#pragma omp simd reduction(| : apart)
        for (int l = 0; l < L; ++l) apart |= (i[l] != kOutside) & (i[l] - every * l != high) & (i[l] - every * l != low);
        return apart ? Run{0, kScattered} : Run{low, high};
    }
};

}  // namespace rl
