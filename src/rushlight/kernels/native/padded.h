// Planes (an image's channel) copied with their padding, columns sorted by their remainder by the stride: the elements
// that neighbouring outputs need for one kernel position are neighbours then, whatever the stride, and no border is special.
#pragma once
#include <algorithm>
#include <type_traits>

#include "memory.h"
#include "windows.h"

namespace rl {

constexpr int kBlock = 4;  // vectors of outputs that are made together

template <class T> using V = typename Vector<T>::type;
template <class T> RL_INLINE V<T> load(const T *from) { return *reinterpret_cast<const V<T> *>(from); }

// Places of dimension d that windows reach, in the padding too.
inline long reach(const Windows &s, int d) { return (s.out[d] - 1) * s.stride[d] + (s.k[d] - 1) * s.dil[d] + 1; }

inline bool paddable(const Windows &s) {
    const long places = elements(reach(s, 0), reach(s, 1), reach(s, 2));
    return s.countable() && places > 0 && places < 1L << 34;
}

// Planes that make one piece worth a thread.
inline long plane_grain(const Windows &s) { return 1 + kGrain / (s.length() * s.taps() + s.area()); }

template <class T> struct Padded {
    const Windows &s;
    long height, width, row;  // rows of a slice, columns of a remainder, elements of a row
    Scratch<T> own;           // where it is large: what is small is kept between calls
    T *data;
    long *place;  // of each kernel position's element of the first output

    // outside: what the padding holds
    Padded(const Windows &of, T outside)
        : s(of), height(reach(1)), width((reach(2) + s.stride[2] - 1) / s.stride[2] + kBlock * kLanes<T>), // blocks read beyond
          row(s.stride[2] * width), own(count() > kKept ? count() : 0, false), data(own.size() ? own.get() : scratch<T, 0>(count())) {
        std::fill(data, data + count(), outside);
        place = scratch<long, 1>(s.taps());
        long tap = 0;
        for (long a = 0; a < s.k[0]; ++a)
            for (long b = 0; b < s.k[1]; ++b)
                for (long c = 0; c < s.k[2]; ++c, ++tap) {
                    const long column = c * s.dil[2];
                    place[tap] = (a * s.dil[0] * height + b * s.dil[1]) * row + column % s.stride[2] * width + column / s.stride[2];
                }
    }

    static constexpr long kKept = 1 << 18;
    long reach(int d) const { return rl::reach(s, d); }
    long count() const { return reach(0) * height * row; }

    void copy(const T *plane) {
        const long rows = std::min(s.in[1] + s.pad[1], height), columns = std::min(s.in[2] + s.pad[2], reach(2)) - s.pad[2];
        for (long z = s.pad[0]; z < std::min(s.in[0] + s.pad[0], reach(0)); ++z)
            for (long y = s.pad[1]; y < rows; ++y) {
                const T *from = plane + ((z - s.pad[0]) * s.in[1] + y - s.pad[1]) * s.in[2];
                T *to = data + (z * height + y) * row;
                if (s.stride[2] == 1) std::copy(from, from + std::max(columns, 0L), to + s.pad[2]);
                else if (s.stride[2] == 2) sorted(from, columns, std::integral_constant<long, 2>(), to);
                else sorted(from, columns, s.stride[2], to);
            }
    }

    // A row's columns by their remainder by the stride.
    template <class N> void sorted(const T *from, long columns, N stride, T *to) const {
        for (long r = 0; r < stride; ++r, to += width) {
            const long skipped = s.pad[2] > r ? (s.pad[2] - r + stride - 1) / stride : 0, first = skipped * stride + r - s.pad[2];
            for (long x = first, j = skipped; x < columns; x += stride) to[j++] = from[x];
        }
    }

    // Where the elements of output row (z, y) begin.
    const T *at(long z, long y) const { return data + (z * s.stride[0] * height + y * s.stride[1]) * row; }
};

}  // namespace rl
