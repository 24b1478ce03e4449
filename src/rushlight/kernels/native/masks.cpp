// Elements where a mask is set: how many there are, moved to one another's side and back, and their places.
#include <algorithm>

#include "common.h"

namespace rl {
namespace {

constexpr long kBlock = 1 << 14;  // elements that a thread goes through at once, whose places were counted before
constexpr long kSome = 256;       // and of which those that are set are gathered without a branch

// A mask of `n` bytes, and behind how many that are set each block begins, up to `count` of all of them.
struct Mask {
    const uint8_t *set;
    const int64_t *starts;
    long n, count;

    // f(first element, how many, set ones before it, set ones among them) of blocks.  A mask that was changed since is not gone by.
    template <class F> void each(F f) const {
        const Mask m = *this;
        parallel_for(ceil_div(n, kBlock), 1, [=](long begin, long end) {
            for (long b = begin; b < end; ++b) {
                const long first = std::clamp(m.starts[b], int64_t(0), int64_t(m.count));
                f(b * kBlock, std::min(kBlock, m.n - b * kBlock), first, std::clamp(m.starts[b + 1], int64_t(first), int64_t(m.count)) - first);
            }
        });
    }
};

// How many of a row are set.
long count_of_row(const uint8_t *row, long n) {
    long found = 0;
    if (n < 16) {
        for (long i = 0; i < n; ++i) found += row[i] != 0;
        return found;
    }
    for (long at = 0; at < n; at += kSome) {
        const long last = std::min(at + kSome, n);
        uint16_t part = 0;
#pragma omp simd reduction(+ : part)
        for (long i = at; i < last; ++i) part += row[i] != 0;
        found += part;
    }
    return found;
}

void count(const uint8_t *mask, int64_t *counts, long n) {
    parallel_for(ceil_div(n, kBlock), 1, [=](long begin, long end) {
        for (long b = begin; b < end; ++b) counts[b] = count_of_row(mask + b * kBlock, std::min(kBlock, n - b * kBlock));
    });
}

// The same of columns beside each other, which go down the rows together.
void count_of_columns(const uint8_t *x, int64_t *out, long n, long inner, long w) {
    uint8_t part[kSome];
    std::fill_n(out, w, int64_t(0));
    for (long top = 0; top < n; top += 255) {
        std::memset(part, 0, w);
        for (long i = top; i < std::min(top + 255, n); ++i) {
            const uint8_t *row = x + i * inner;
#pragma omp simd
            for (long j = 0; j < w; ++j) part[j] += row[j] != 0;
        }
        for (long j = 0; j < w; ++j) out[j] += part[j];
    }
}

// Over the middle of three dimensions.
void counts(const uint8_t *x, int64_t *out, long outer, long n, long inner) {
    if (inner == 1)
        return parallel_for(outer, row_grain(n), [=](long begin, long end) {
            for (long r = begin; r < end; ++r) out[r] = count_of_row(x + r * n, n);
        });
    const long units = ceil_div(inner, kSome);
    parallel_for(outer * units, row_grain(n * std::min(inner, kSome) / 8), [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kSome;
            count_of_columns(x + i / units * n * inner + first, out + i / units * inner + first, n, inner, std::min(kSome, inner - first));
        }
    });
}

template <class T> void take(const Mask &m, const T *x, T *o) {
    m.each([=](long at, long some, long to, long room) {
        T held[kSome];
        for (long end = at + some; at < end; at += kSome) {
            long k = 0;
            for (long i = at, last = std::min(at + kSome, end); i < last; ++i) held[k] = x[i], k += m.set[i] != 0;
            k = std::min(k, room);
            std::memcpy(o + to, held, k * sizeof(T));
            to += k, room -= k;
        }
    });
}

// Where the mask is not set: what is there, if that is kept, else zeros.
template <class T, bool kKept> void put(const Mask &m, const T *x, T *o) {
    m.each([=](long at, long some, long from, long room) {
        if (!room) return kKept ? void() : (void)std::memset(o + at, 0, some * sizeof(T));
        const T *given = x + from;
        for (long i = at, k = 0; i < at + some; ++i) {
            const bool set = m.set[i] != 0;
            const T all = (T)-(T)set, value = given[std::min(k, room - 1)];  // without a branch, which masks at random would have the processor guess
            o[i] = (T)((value & all) | (kKept ? o[i] & (T)~all : 0));
            k += set;
        }
    });
}

// Places in columns: along each dimension those of all elements, one behind the other.
void places(const Mask &m, const int64_t *shape, long dims, int64_t *o) {
    const long width = shape[dims - 1];
    m.each([=](long at, long some, long to, long room) {
        int64_t held[kSome];
        for (long end = at + some; at < end;) {
            long row = at / width, first = at % width, last = std::min({width, first + kSome, first + end - at}), k = 0;
            for (long i = first; i < last; ++i) held[k] = i, k += m.set[row * width + i] != 0;
            at += last - first;
            k = std::min(k, room);
            std::memcpy(o + (dims - 1) * m.count + to, held, k * sizeof(int64_t));
            for (long d = dims - 2; d >= 0; row /= shape[d], --d) std::fill_n(o + d * m.count + to, k, int64_t(row % shape[d]));
            to += k, room -= k;
        }
    });
}

Mask mask_of(Call &call, const Array *mask, const Array *starts, long n, long count) {
    return {call.in<uint8_t>("mask", mask, n), call.in<int64_t>("starts", starts, ceil_div(n, kBlock) + 1), n, count};
}

template <class T> void taken(Call &call, Array *mask, Array *starts, Array *x_, Array *o_, long n, long count) {
    const Mask m = mask_of(call, mask, starts, n, count);
    const T *x = call.in<T>("input", x_, n);
    T *o = call.out<T>("out", o_, count);
    call.run([=] { take(m, x, o); });
}

template <class T, bool kKept = false> void put_back(Call &call, Array *mask, Array *starts, Array *x_, Array *o_, long n, long count) {
    const Mask m = mask_of(call, mask, starts, n, count);
    const T *x = call.in<T>("input", x_, count);
    T *o = call.out<T>("out", o_, n);
    call.run([=] { put<T, kKept>(m, x, o); });
}

template <class T> void written(Call &call, Array *mask, Array *starts, Array *x, Array *o, long n, long count) {
    put_back<T, true>(call, mask, starts, x, o, n, count);
}

}  // namespace
}  // namespace rl

RL_EXPORT void rl_mask_counts_bytes(Array *mask_, Array *counts_, long n) {
    rl::Call call("mask_counts");
    const uint8_t *mask = call.in<uint8_t>("mask", mask_, n);
    int64_t *counts = call.out<int64_t>("counts", counts_, rl::ceil_div(n, rl::kBlock));
    call.run([=] { rl::count(mask, counts, n); });
}

RL_EXPORT void rl_counts_bytes(Array *x_, Array *out_, long outer, long n, long inner) {
    rl::Call call("counts");
    const uint8_t *x = call.in<uint8_t>("input", x_, outer, n, inner);
    int64_t *out = call.out<int64_t>("out", out_, outer, inner);
    call.run([=] { rl::counts(x, out, outer, n, inner); });
}

// Of unsigned numbers as wide as the elements.
#define MOVES(NAME, FUNCTION)                                                                                             \
    RL_EXPORT void rl_##NAME##_bytes(Array *mask, Array *starts, Array *x, Array *o, long n, long count) {                \
        rl::Call call(#NAME);                                                                                             \
        if (!call.is_array("input", x)) return;                                                                           \
        switch (x->descr->itemsize) {                                                                                     \
            case 1: return rl::FUNCTION<uint8_t>(call, mask, starts, x, o, n, count);                                     \
            case 2: return rl::FUNCTION<uint16_t>(call, mask, starts, x, o, n, count);                                    \
            case 4: return rl::FUNCTION<uint32_t>(call, mask, starts, x, o, n, count);                                    \
            default: return rl::FUNCTION<uint64_t>(call, mask, starts, x, o, n, count);                                   \
        }                                                                                                                 \
    }
MOVES(mask_take, taken)
MOVES(mask_put, put_back)
MOVES(mask_write, written)

RL_EXPORT void rl_mask_places_bytes(Array *mask, Array *starts, Array *shape_, Array *o_, long n, long count) {
    rl::Call call("mask_places");
    const long dims = call.size("shape", shape_, 0);
    const rl::Mask m = rl::mask_of(call, mask, starts, n, count);
    const int64_t *shape = call.in<int64_t>("shape", shape_, dims);
    int64_t *o = call.out<int64_t>("out", o_, dims, count), all = shape ? 1 : -1;
    for (long d = 0; shape && d < dims; ++d) all = rl::elements(all, shape[d]);
    call.expect(dims > 0 && all == n, "sizes of the mask");
    call.run([=] { rl::places(m, shape, dims, o); });
}
