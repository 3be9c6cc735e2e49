#include "compress/config_rules_teacher.h"

#include <algorithm>

namespace ctk::pipeline {
namespace {

bool has_problem_below(const CheckedValues& values, const std::string& path) {
  const auto section = values.sections.find(path);
  if (section == values.sections.end()) return false;
  return std::ranges::any_of(
      values.problems, [&](const Problem& problem) { return problem.path.starts_with(section->second.second + "."); });
}

bool is_given(const CheckedValues& values, const std::string& path) {
  const auto found = values.values.find(path);
  return found != values.values.end() && !found->second.where.empty();
}

}  // namespace

void check_teachers(const CheckedValues& values,
                    const std::function<void(const std::string& path, std::string message)>& problem) {
  const bool has_student = values.has_section("stages.distill.student");
  if (std::ranges::count(values.stages, "distill") != 0 && !values.has("stages.distill.teacher") && !has_student &&
      !has_problem_below(values, "stages.distill")) {
    problem("stages.distill",
            "expected a teacher, found none. Add the key \"teacher\", or \"student: {width: 0.5}\" to make a smaller "
            "network of the model, which is then the teacher.");
  }
  const double* width = values.get<double>("stages.distill.student.width");
  if (has_student && (width == nullptr || *width >= 1) && !values.has("stages.distill.student.depth") &&
      !has_problem_below(values, "stages.distill.student")) {
    problem("stages.distill.student",
            "expected width below 1 or depth, found neither: the student would be the model. Add \"width: 0.5\".");
  }
  for (const std::string at : {"stages.distill", "stages.prune.finetune", "stages.finetune", "stages.qat"}) {
    const auto* teacher = values.get<std::string>(at + ".teacher");
    const bool is_network = teacher != nullptr ? !teacher->ends_with(".npz") : at == "stages.distill" && has_student;
    if (values.has(at + ".features") && !is_network) {
      problem(
          at + ".features",
          "expected a teacher that is a network, whose inner values they are, found none. Give its model, or remove "
          "this key.");
    }
    for (const char* key : {".feature_loss", ".feature_weight"}) {
      if (!is_given(values, at + key) || values.has(at + ".features")) continue;
      problem(at + key, "expected features beside it, found none. Add \"features: [auto]\", or remove this key.");
    }
  }
}

}  // namespace ctk::pipeline
