// Planes (an image's channel) copied with their padding, columns sorted by their remainder by the stride: the elements
// that neighbouring outputs need for one kernel position are neighbours then, whatever the stride, and no border is special.
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "memory.h"
#include "windows.h"

namespace rl {

constexpr int kBlock = 4;  // vectors of outputs that are made together

template <class T> using V = typename Vector<T>::type;
template <class T> RL_INLINE V<T> load(const T *from) { return *reinterpret_cast<const V<T> *>(from); }

template <class T> RL_INLINE void store(T *to, V<T> vector) { std::memcpy(to, &vector, sizeof vector); }

// Of two vectors that follow each other, the numbers at even places, or at odd ones.
template <size_t odd, class W, size_t... I> RL_INLINE W every_second(W a, W b, std::index_sequence<I...>) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, (int)(2 * I + odd)...);
#else
    typedef decltype(a < a) Places;
    return __builtin_shuffle(a, b, Places{(int)(2 * I + odd)...});
#endif
}

// Places of dimension d that windows reach, in the padding too.
inline long reach(const Windows &s, int d) { return (s.out[d] - 1) * s.stride[d] + (s.k[d] - 1) * s.dil[d] + 1; }

inline bool paddable(const Windows &s) {
    const long places = elements(reach(s, 0), reach(s, 1), reach(s, 2));
    return s.countable() && places > 0 && places < 1L << 34;
}

// Planes that make one piece worth a thread.
inline long plane_grain(const Windows &s) { return 1 + kGrain / (s.length() * s.taps() + s.area()); }

// How planes lie when they are copied: rows of columns by their remainder, of all places that windows reach.
template <class T> struct Sheet {
    const Windows &s;
    long height, width, row;  // rows of a slice, columns of a remainder, elements of a row

    // beyond: more columns of each remainder, which are read and never used
    Sheet(const Windows &of, long beyond)
        : s(of), height(reach(1)), width((reach(2) + s.stride[2] - 1) / s.stride[2] + beyond), row(s.stride[2] * width) {}

    long reach(int d) const { return rl::reach(s, d); }
    long count() const { return reach(0) * height * row; }
    // Of an output's first element.
    long at(long z, long y) const { return (z * s.stride[0] * height + y * s.stride[1]) * row; }

    // of each kernel position's element of the first output
    template <class I> void places(I *place) const {
        for (long a = 0; a < s.k[0]; ++a)
            for (long b = 0; b < s.k[1]; ++b)
                for (long c = 0; c < s.k[2]; ++c) {
                    const long column = c * s.dil[2];
                    *place++ = (I)((a * s.dil[0] * height + b * s.dil[1]) * row + column % s.stride[2] * width + column / s.stride[2]);
                }
    }

    // A plane's elements, padding left as it is.  before: places of padding before them; fewer than none where what is copied begins later.
    void copy(const T *plane, T *data, const int64_t *before) const {
        const long z_end = std::min(s.in[0] + before[0], reach(0)), y_end = std::min(s.in[1] + before[1], height);
        for (long z = std::max(before[0], 0L); z < z_end; ++z)
            for (long y = std::max(before[1], 0L); y < y_end; ++y)
                copy_row(plane + ((z - before[0]) * s.in[1] + y - before[1]) * s.in[2], data + (z * height + y) * row, before[2]);
    }

    void copy_row(const T *from, T *to, long before) const {
        const long end = std::min(s.in[2] + before, reach(2)) - before, begin = std::max(-before, 0L);
        if (s.stride[2] == 1) std::copy(from + begin, from + std::max(end, begin), to + begin + before);
        else if (s.stride[2] == 2) sort_pairs(from, begin, end, to, before);
        else sort_row(from, end, to, before);
    }

    // Columns by their remainder by the stride.
    void sort_row(const T *from, long end, T *to, long before) const {
        const long stride = s.stride[2];
        for (long r = 0; r < stride; ++r, to += width) {
            const long skipped = before > r ? (before - r + stride - 1) / stride : 0, first = skipped * stride + r - before;
            for (long x = first, j = skipped; x < end; x += stride) to[j++] = from[x];
        }
    }

    // By whether they are even: of two vectors each takes its half.
    void sort_pairs(const T *from, long x, long end, T *to, long before) const {
        constexpr long L = kLanes<T>;
        if (x < end && (x + before) % 2) to[width + (x + before) / 2] = from[x], ++x;
        T *even = to + (x + before) / 2, *odd = even + width;
        for (; x + 2 * L <= end; x += 2 * L, even += L, odd += L) {
            const V<T> first = load(from + x), second = load(from + x + L);
            store(even, every_second<0>(first, second, std::make_index_sequence<L>()));
            store(odd, every_second<1>(first, second, std::make_index_sequence<L>()));
        }
        for (; x + 2 <= end; x += 2) *even++ = from[x], *odd++ = from[x + 1];
        if (x < end) *even = from[x];
    }
};

// One plane at a time.
template <class T> struct Padded : Sheet<T> {
    using Sheet<T>::s;
    Scratch<T> own;  // where it is large: what is small is kept between calls
    T *data;
    long *place;

    // outside: what the padding holds
    Padded(const Windows &of, T outside)
        : Sheet<T>(of, kBlock * kLanes<T>), own(this->count() > kKept ? this->count() : 0, false),
          data(own.size() ? own.get() : scratch<T, 0>(this->count())) {
        std::fill(data, data + this->count(), outside);
        place = scratch<long, 1>(s.taps());
        this->places(place);
    }

    static constexpr long kKept = 1 << 18;

    void copy(const T *plane) { Sheet<T>::copy(plane, data, s.pad); }
    const T *at(long z, long y) const { return data + Sheet<T>::at(z, y); }
};

}  // namespace rl
