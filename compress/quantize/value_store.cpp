#include "compress/quantize/value_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace ctk::quantization {

struct ValueStore::State {
  std::size_t most = 0, in_memory = 0, in_file = 0, end = 0;
  std::string folder;
  int file = -1;

  ~State() {
    if (file >= 0) ::close(file);
  }
  Error failed(const std::string& doing) const {
    return input_error(folder + ": expected room to keep values between layers (" + std::to_string(in_file) +
                       " bytes so far), found while " + doing + ": " + std::strerror(errno) +
                       ". Free some, or give fewer samples");
  }
};

struct ValueStore::Held::Entry {
  std::shared_ptr<State> state;
  Tensor tensor;  // undefined: in the file
  DType dtype = DType::f32;
  Shape shape;
  std::size_t offset = 0, bytes = 0;

  ~Entry() {
    if (tensor.is_defined()) {
      state->in_memory -= bytes;
      return;
    }
    state->in_file -= bytes;
    // Pages inside the hole go back to the disk; that some systems cannot do it costs room and nothing else.
    (void)!::fallocate(state->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<::off_t>(offset),
                       static_cast<::off_t>(bytes));
  }
};

ValueStore::ValueStore(std::size_t most_in_memory, std::string folder) : state_(std::make_shared<State>()) {
  state_->most = folder.empty() ? SIZE_MAX : most_in_memory;
  state_->folder = std::move(folder);
}
ValueStore::~ValueStore() = default;

std::size_t ValueStore::in_memory() const {
  return state_->in_memory;
}
std::size_t ValueStore::in_file() const {
  return state_->in_file;
}

const Shape& ValueStore::Held::shape() const {
  return entry_->shape;
}

const Tensor& ValueStore::Held::in_memory() const {
  assert(entry_->tensor.is_defined());
  return entry_->tensor;
}

Result<Tensor> ValueStore::Held::read() const {
  if (entry_->tensor.is_defined()) return entry_->tensor;
  CTK_TRY(Tensor tensor, Tensor::zeros(entry_->dtype, entry_->shape));
  auto* to = static_cast<char*>(tensor.mutable_data());
  for (std::size_t done = 0; done < entry_->bytes;) {
    const ::ssize_t got =
        ::pread(entry_->state->file, to + done, entry_->bytes - done, static_cast<::off_t>(entry_->offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return entry_->state->failed("reading");
    done += static_cast<std::size_t>(got);
  }
  return tensor;
}

Result<ValueStore::Held> ValueStore::keep(Tensor value) {
  State& state = *state_;
  auto entry = std::make_shared<Held::Entry>();
  Held held;
  entry->state = state_;
  entry->dtype = value.dtype();
  entry->shape = value.shape();
  entry->bytes = value.bytes();
  if (state.in_memory + entry->bytes <= state.most || entry->bytes == 0) {
    state.in_memory += entry->bytes;
    entry->tensor = std::move(value);
    held.entry_ = std::move(entry);
    return held;
  }
  state.in_file += entry->bytes;  // given back by the entry, whatever happens
  if (state.file < 0) {
    std::error_code ignored;  // opening says what is wrong
    std::filesystem::create_directories(state.folder, ignored);
    state.file = ::open(state.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (state.file < 0) {
      Error error = state.failed("making a file");
      state.in_file = 0;
      entry->tensor = std::move(value);
      entry->bytes = 0;
      return error;
    }
  }
  entry->offset = state.end;
  constexpr std::size_t kPage = 4096;  // values share none, so that each can be given back
  state.end += (entry->bytes + kPage - 1) / kPage * kPage;
  const auto* from = static_cast<const char*>(value.data());
  for (std::size_t done = 0; done < entry->bytes;) {
    const ::ssize_t wrote =
        ::pwrite(state.file, from + done, entry->bytes - done, static_cast<::off_t>(entry->offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return state.failed("writing");
    done += static_cast<std::size_t>(wrote);
  }
  held.entry_ = std::move(entry);
  return held;
}

}  // namespace ctk::quantization
