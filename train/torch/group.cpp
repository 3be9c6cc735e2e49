#include "train/torch/group.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

namespace ctk::train {
namespace {

at::Tensor bytes_of(std::span<const std::byte> bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

class GroupRanks final : public Ranks {
 public:
  GroupRanks(c10::intrusive_ptr<c10d::ProcessGroup> group, int here)
      : Ranks(group->getRank(), group->getSize(), here), group_(std::move(group)) {}

 private:
  Status carry_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return done([&] {
      std::vector<at::Tensor> in{bytes_of(mine)};
      std::vector<std::vector<at::Tensor>> out(1);
      for (std::size_t r = 0; r < all.size() / mine.size(); ++r) {
        out[0].push_back(bytes_of(all.subspan(r * mine.size(), mine.size())));
      }
      return group_->allgather(out, in);
    });
  }

  Status carry_from_first(std::span<std::byte> bytes) override {
    return done([&] {
      std::vector<at::Tensor> all{bytes_of(bytes)};
      return group_->broadcast(all);
    });
  }

  // Gloo adds each piece on one rank and hands the sum round: the same bits everywhere.
  Status carry_sum(std::span<float> values) override {
    return done([&] {
      std::vector<at::Tensor> all{at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat)};
      return group_->allreduce(all);
    });
  }

  template <class Start>
  Status done(Start&& start) {
    std::string said;
    try {
      if (start()->wait()) return {};
      said = "the group gave up";
    } catch (const c10::Error& error) {
      said = error.what_without_backtrace();
    } catch (const std::exception& error) {
      said = error.what();
    }
    return input_error(said.substr(0, said.find('\n')));
  }

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

Result<std::unique_ptr<Ranks>> join_group(const std::string& name, int here) {
  try {
    return std::unique_ptr<Ranks>(new GroupRanks(c10d::resolve_process_group(name), here));
  } catch (const std::exception&) {
    return config_error("process group \"" + name +
                        "\": expected one that torch.distributed made in this process, found none. Start with "
                        "torchrun --nproc-per-node N -m compress");
  }
}

}  // namespace ctk::train
