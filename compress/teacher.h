// Who is learned from: a network, recorded outputs of one that is not there, and which inner values are held together.
#pragma once

#include <string>
#include <vector>

#include "compress/session.h"
#include "train/trainer.h"

namespace ctk::pipeline {

// Size of the dimension that runs over classes, of the first output for one sample; nothing where it is not known.
std::optional<std::int64_t> classes_of(const graph::Graph& graph, const std::vector<Shape>& shapes);

// Whether `teacher` names recorded outputs: an .npz file.
bool is_recorded(const std::string& teacher);

// What a teacher said of the rows of data.train's file, row by row. One of the two is there.
struct RecordedTeacher {
  Tensor logits;                     // f32 [rows, classes]
  std::vector<std::int64_t> labels;  // [rows]
};
// Of an .npz with an array "logits", "probabilities" (their logarithms are taken, of at least 1e-7) or "labels".
// `key` opens messages. Errors: input (none of them, other shapes, numbers that are none, fewer rows than data.train
// reads, classes that are not the network's). `cuts`: as above, of logits and probabilities.
Result<RecordedTeacher> load_recorded(const Session& session, const std::string& path, const std::string& key,
                                      bool cuts);

// The network in `teacher`. `cuts`: of a teacher with more classes the first are taken, so that a softmax runs over the
// student's alone. Errors: input (other inputs or classes than those of session.float_graph()).
Result<graph::Graph> load_teacher(const Session& session, const std::string& teacher, const std::string& key,
                                  bool cuts);

// The pairs that `features` of a training asks for: "student = teacher", each the name of a value or the address of the
// node that makes it; or "auto": where both networks narrow to one value (graph/blocks.h), of each resolution up to
// kMostPairs values of the student, each with the teacher's that stands as far along. `of_attention`: what Attention
// nodes give, or a Softmax over keys, and auto pairs these, as many and as far along.
// Errors: config (names that are not there, pairs of other places, no pair found), with the key.
inline constexpr std::size_t kMostPairs = 4;
Result<std::vector<train::FeaturePair>> pair_features(const graph::Graph& student, const graph::Graph& teacher,
                                                      const std::vector<Shape>& shapes,
                                                      const std::vector<std::string>& features, const std::string& key,
                                                      bool of_attention = false);

}  // namespace ctk::pipeline
