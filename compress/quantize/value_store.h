// Values of many samples, in memory up to a bound and beyond it in a file without a name.
#pragma once

#include <memory>
#include <string>

#include "core/tensor.h"

namespace ctk::quantization {

class ValueStore {
 public:
  // `folder` is made when it is needed; empty: all stays in memory.
  explicit ValueStore(std::size_t most_in_memory = SIZE_MAX, std::string folder = "");
  ~ValueStore();

  // A value that is kept; where it lies is given back when the last copy goes.
  class Held {
   public:
    const Shape& shape() const;
    // In memory: the tensor itself; else read from the file into memory of its own. Errors: input (the file).
    Result<Tensor> read() const;
    const Tensor& in_memory() const;  // must be there

   private:
    friend class ValueStore;
    struct Entry;
    std::shared_ptr<const Entry> entry_;
  };
  // Errors: input (the file cannot be made or written: path, system message).
  Result<Held> keep(Tensor value);
  std::size_t in_memory() const;  // bytes
  std::size_t in_file() const;    // bytes

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ctk::quantization
