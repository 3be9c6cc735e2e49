#include "train/trainer_loader.h"

#include <cstdlib>

#include "core/module.h"

namespace ctk::train {
namespace {

constexpr const char* kRemedy =
    ". Run `make trainer`, which fetches LibTorch and builds the module, or leave out distill, prune's finetune, "
    "finetune, qat and method signround";

// LibTorch's OpenMP threads wait by spinning unless told otherwise, which beside one busy process makes a step ten
// times as long. Told while the library is loaded, and only when the user has not.
class PassiveWait {
 public:
  PassiveWait() : is_ours_(std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    if (is_ours_) setenv("OMP_WAIT_POLICY", "passive", 0);
  }
  ~PassiveWait() {
    if (is_ours_) unsetenv("OMP_WAIT_POLICY");
  }
  PassiveWait(const PassiveWait&) = delete;
  PassiveWait& operator=(const PassiveWait&) = delete;

 private:
  const bool is_ours_;
};

Result<Trainer*> open_trainer() {
  const PassiveWait while_it_loads;
  constexpr const char* kSymbols[] = {"ctk_train_open"};
  auto found = open_module("libctk_train.so", kSymbols);
  if (!found) {
    return config_error(
        "training: expected libctk_train.so beside the program and LibTorch where it was built with, "
        "found none that loads (" +
        found.error().message + ")" + kRemedy);
  }
  Trainer* trainer = reinterpret_cast<decltype(&ctk_train_open)>((*found)[0])(kTrainerVersion);
  if (trainer == nullptr) {
    return config_error("training: expected a libctk_train.so of interface " + std::to_string(kTrainerVersion) +
                        ", found one of another build" + kRemedy);
  }
  return trainer;
}

}  // namespace

Result<Trainer*> load_trainer() {
  static const Result<Trainer*> trainer = open_trainer();
  return trainer;
}

}  // namespace ctk::train
