// Bytes under NumPy's arrays and inside kernels: counted always, recorded on demand.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>

namespace rl {

// bounded: whether it may be refused where a limit leaves no room; false if it was.
bool born(void *block, size_t bytes, bool bounded);
void died(void *block, size_t bytes);

// Working memory of a kernel, counted like an array's.  Raises std::bad_alloc where there is no room, or a limit leaves
// none, unless it is not bounded: on the pool's threads, where nothing can be raised.
template <class T> class Scratch {
    T *data_;
    size_t bytes_;

  public:
    explicit Scratch(size_t count, bool bounded = true)
        : data_(static_cast<T *>(std::malloc(count * sizeof(T) + 1))), bytes_(count * sizeof(T)) {
        if (data_ && born(data_, bytes_, bounded)) return;
        std::free(data_);
        throw std::bad_alloc();
    }
    ~Scratch() {
        died(data_, bytes_);
        std::free(data_);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    T *get() const { return data_; }
    size_t size() const { return bytes_ / sizeof(T); }
};

}  // namespace rl
