// Axes of two arrays that are gone through together.
#pragma once
#include "common.h"

namespace rl {

// Sizes, and how far apart elements of both arrays lie on each axis, in elements; neighbours that can be one are.
struct Axes {
    static constexpr int kMost = 8;
    int count = 0;
    long size[kMost], x[kMost], y[kMost];

    void add(long n, long dx, long dy) {  // an axis within those that are there
        if (n == 1) return;
        const int last = count - 1;
        if (count && x[last] == dx * n && y[last] == dy * n) {
            size[last] *= n, x[last] = dx, y[last] = dy;
        } else {
            size[count] = n, x[count] = dx, y[count] = dy, ++count;
        }
    }
    void take(int axis) {  // out of those that are left
        for (int i = axis; i + 1 < count; ++i) size[i] = size[i + 1], x[i] = x[i + 1], y[i] = y[i + 1];
        --count;
    }
    long total() const {
        long found = 1;
        for (int i = 0; i < count; ++i) found *= size[i];
        return found;
    }
    // Where the elements of place `at` lie, counted along all axes.
    void find(long at, long &of_x, long &of_y) const {
        of_x = of_y = 0;
        for (int i = count - 1; i >= 0; --i) {
            of_x += at % size[i] * x[i], of_y += at % size[i] * y[i];
            at /= size[i];
        }
    }
    bool inner(long dx, long dy) const { return x[count - 1] == dx && y[count - 1] == dy; }
};

}  // namespace rl
