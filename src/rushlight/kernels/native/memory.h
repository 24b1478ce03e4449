// Bytes under NumPy's arrays and inside kernels: counted always, recorded on demand.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>

namespace rl {

void born(void *block, size_t bytes);
void died(void *block, size_t bytes);

// Working memory of a kernel, counted like an array's.
template <class T> class Scratch {
    T *data_;
    size_t bytes_;

  public:
    explicit Scratch(size_t count) : data_(static_cast<T *>(std::malloc(count * sizeof(T) + 1))), bytes_(count * sizeof(T)) {
        if (!data_) throw std::bad_alloc();
        born(data_, bytes_);
    }
    ~Scratch() {
        died(data_, bytes_);
        std::free(data_);
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    T *get() { return data_; }
    size_t size() const { return bytes_ / sizeof(T); }
};

}  // namespace rl
