// Opens libctk_train.so, once, when the first stage asks for it: LibTorch is large, and everything else works without.
#pragma once

#include "train/trainer.h"

namespace ctk::train {

// Raised with every change of trainer.h: a module of another build is refused, not run.
inline constexpr int kTrainerVersion = 4;

// Looked for as core/module.h says. The trainer lives until the process ends; one call at a time.
// Errors: config (not there, LibTorch not there, another version: says what the system said and how to get it).
Result<Trainer*> load_trainer();

}  // namespace ctk::train

// What the module exports: null when `version` is not its own.
extern "C" ctk::train::Trainer* ctk_train_open(int version);
