// Elements of a given rank in rows, and rows of a few elements in order.  Numbers are compared by the bits that order them: a NaN is larger
// than all others.
#include <algorithm>

#include "common.h"
#include "memory.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace rl {
namespace {

template <class T> struct Bits;
template <> struct Bits<float> {
    typedef uint32_t Key;
};
template <> struct Bits<double> {
    typedef uint64_t Key;
};
template <class T> using KeyOf = typename Bits<T>::Key;

// An unsigned number that is as large as `v` among others; of both zeros the same.
template <class T> RL_INLINE KeyOf<T> key(T v) {
    typedef KeyOf<T> Key;
    constexpr Key kSign = Key(1) << (8 * sizeof(T) - 1);
    v += T(0);  // -0 is 0
    Key bits;
    std::memcpy(&bits, &v, sizeof bits);
    const Key found = bits & kSign ? ~bits : bits | kSign;
    return v != v ? ~Key(0) : found;
}

// Those of `n` keys that are less than `pivot`, or greater, moved together, which may be in their own place; how many they are.
template <bool kLess, class Key> long keep(const Key *from, Key *to, long n, Key pivot) {
    long i = 0, count = 0;
#if defined(__AVX512F__)
    if constexpr (sizeof(Key) == 4) {
        const __m512i by = _mm512_set1_epi32((int)pivot);
        for (; i + 16 <= n; i += 16) {
            const __m512i v = _mm512_loadu_si512(from + i);
            const __mmask16 m = kLess ? _mm512_cmplt_epu32_mask(v, by) : _mm512_cmpgt_epu32_mask(v, by);
            _mm512_storeu_si512(to + count, _mm512_maskz_compress_epi32(m, v));
            count += __builtin_popcount(m);
        }
    } else {
        const __m512i by = _mm512_set1_epi64((long long)pivot);
        for (; i + 8 <= n; i += 8) {
            const __m512i v = _mm512_loadu_si512(from + i);
            const __mmask8 m = kLess ? _mm512_cmplt_epu64_mask(v, by) : _mm512_cmpgt_epu64_mask(v, by);
            _mm512_storeu_si512(to + count, _mm512_maskz_compress_epi64(m, v));
            count += __builtin_popcount(m);
        }
    }
#endif
    for (; i < n; ++i) {
        const Key v = from[i];
        to[count] = v;
        count += kLess ? v < pivot : v > pivot;
    }
    return count;
}

template <class Key> RL_INLINE Key middle(Key a, Key b, Key c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }

constexpr long kFewKeys = 24;  // that are put in order one by one

template <class Key> void put_in_order(Key *keys, long n) {
    for (long i = 1; i < n; ++i) {
        const Key v = keys[i];
        long j = i;
        for (; j > 0 && keys[j - 1] > v; --j) keys[j] = keys[j - 1];
        keys[j] = v;
    }
}

// The k-th smallest, from 0 (Hoare's Find, 1961, of which each step counts before it moves).
template <class Key> Key selected(Key *keys, long n, long k) {
    for (long round = 0; n > kFewKeys; ++round) {
        const long third = n / 3, at = (round * 7919) % third;
        const Key pivot = middle(keys[at], keys[third + at], keys[2 * third + at]);
        long less = 0, equal = 0;
#pragma omp simd reduction(+ : less, equal)
        for (long i = 0; i < n; ++i) less += keys[i] < pivot, equal += keys[i] == pivot;
        if (k < less) {
            n = keep<true>(keys, keys, n, pivot);
        } else if (k < less + equal) {
            return pivot;
        } else {
            n = keep<false>(keys, keys, n, pivot), k -= less + equal;
        }
    }
    put_in_order(keys, n);
    return keys[k];
}

// Where the element of rank `k` is, `wanted`: of equal ones that which a stable order puts there.
template <class T> long place_of(const T *row, long n, KeyOf<T> wanted, long k) {
    constexpr long kSome = 256;
    long before = 0;
#pragma omp simd reduction(+ : before)
    for (long i = 0; i < n; ++i) before += key(row[i]) < wanted;
    k -= before;
    for (long at = 0; at < n; at += kSome) {
        const long last = std::min(at + kSome, n);
        long equal = 0;
#pragma omp simd reduction(+ : equal)
        for (long i = at; i < last; ++i) equal += key(row[i]) == wanted;
        for (long i = at; k < equal && i < last; ++i)
            if (key(row[i]) == wanted && k-- == 0) return i;
        k -= equal;
    }
    return 0;
}

// ks: of each row which rank; without them `k`.
template <class T> void select(const T *x, const int64_t *ks, T *values, int64_t *where, long rows, long n, long k) {
    parallel_for(rows, row_grain(4 * n), [=](long begin, long end) {
        Scratch<KeyOf<T>> room(n + 64 / sizeof(T), false);
        KeyOf<T> *keys = room.get();
        for (long r = begin; r < end; ++r) {
            const T *row = x + r * n;
#pragma omp simd
            for (long i = 0; i < n; ++i) keys[i] = key(row[i]);
            const long rank = ks ? std::clamp<long>(ks[r], 0, n - 1) : k;
            where[r] = place_of(row, n, selected(keys, n, rank), rank);
            values[r] = row[where[r]];
        }
    });
}

// Rows of few elements in order, equal ones as they were.
template <class T, bool kDown> void order(const T *x, T *values, int64_t *where, long rows, long n) {
    parallel_for(rows, row_grain(4 * n), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const T *row = x + r * n;
            int64_t *at = where + r * n;
            KeyOf<T> keys[kFewKeys];
            for (long i = 0; i < n; ++i) {
                const KeyOf<T> v = kDown ? ~key(row[i]) : key(row[i]);
                long j = i;
                for (; j > 0 && keys[j - 1] > v; --j) keys[j] = keys[j - 1], at[j] = at[j - 1];
                keys[j] = v, at[j] = i;
            }
            for (long i = 0; i < n; ++i) values[r * n + i] = row[at[i]];
        }
    });
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                                          \
    RL_EXPORT void rl_select_##S(Array *x_, Array *ks_, Array *values_, Array *where_, long rows, long n, long k) {                        \
        rl::Call call("select");                                                                                                           \
        call.expect(rows > 0 && n > 0 && 0 <= k && k < n, "a rank of a row");                                                              \
        const T *x = call.in<T>("input", x_, rows, n);                                                                                     \
        const int64_t *ks = call.maybe_in<int64_t>("ranks", ks_, rows);                                                                    \
        T *values = call.out<T>("values", values_, rows);                                                                                  \
        int64_t *where = call.out<int64_t>("places", where_, rows);                                                                        \
        call.run([=] { rl::select(x, ks, values, where, rows, n, k); });                                                                   \
    }                                                                                                                                      \
    RL_EXPORT void rl_short_order_##S(Array *x_, Array *values_, Array *where_, long n, int descending) {                                  \
        rl::Call call("short_order");                                                                                                      \
        call.expect(0 < n && n <= rl::kFewKeys, "rows of few elements");                                                                   \
        const long size = call.size("input", x_), rows = n > 0 ? size / n : 0;                                                             \
        const T *x = call.in<T>("input", x_, rows, n);                                                                                     \
        T *values = call.out<T>("values", values_, rows, n);                                                                               \
        int64_t *where = call.out<int64_t>("places", where_, rows, n);                                                                     \
        call.run([=] { descending ? rl::order<T, true>(x, values, where, rows, n) : rl::order<T, false>(x, values, where, rows, n); });    \
    }
RL_BOTH(ALL)
