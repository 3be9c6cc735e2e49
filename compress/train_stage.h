// The stages that train: distill, finetune, and what prune's `finetune:` calls. The trainer itself is train/trainer.h.
#pragma once

#include <string>
#include <vector>

#include "compress/session.h"

namespace ctk::pipeline {

// Trains `net`, a float network with the inputs and outputs of session.model.graph, on data.train as `config` says;
// with a teacher towards that one's outputs. The result is the state that was best on the select split, `net` itself
// among them; without a select split the last one. What is done is kept in the stage cache under session.fingerprint,
// which must stand for all that led to `net`: a killed run goes on at the last saved step. `stage` names progress,
// artifacts and messages. `notes` (may be null) receives JSON: loss and metric of every epoch.
// Errors: config (no trainer, numbers, a loss that is no number), input (data, teacher), interrupted (resumable).
Result<graph::Graph> fine_tune(Session& session, const graph::Graph& net, const TrainConfig& config,
                               const std::string& stage, std::string* notes = nullptr);

// What a training depends on beside its own keys: the teacher's content and the augmentation. For run_network_stage.
// Errors: input (the teacher cannot be read).
Result<std::vector<std::string>> training_depends(const Session& session, const TrainConfig& config);

// Before any work: the trainer is there, and the split it needs. Nothing when no stage trains.
Status require_training(const Session& session);

std::int64_t train_work(const Session& session, const TrainConfig& config);  // steps, for the progress bar
Status run_distill(Session& session, bool& cached);
Status run_finetune(Session& session, bool& cached);

}  // namespace ctk::pipeline
