#include "compress/teacher.h"

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "data/npy.h"
#include "graph/blocks.h"
#include "graph/floats.h"
#include "graph/shapes.h"

namespace ctk::pipeline {
namespace {

using graph::Graph;
using graph::ValueId;

constexpr float kLeastProbability = 1e-7f;

Result<Tensor> read_array(const data::ZipFile& file, const std::string& name, const std::string& path) {
  const data::ZipEntry* entry = file.find(name + ".npy");
  if (entry == nullptr) return Tensor();
  CTK_TRY(const data::Bytes bytes, file.read(*entry));
  const auto head = bytes.bytes.first(std::min(bytes.bytes.size(), data::kNpyHeadBytes));
  CTK_TRY(const data::NpyHeader header, data::parse_npy_header(head, bytes.bytes.size(), path + ": " + name));
  CTK_TRY(data::NpyArray array, data::load_npy(header, bytes, path + ": " + name));
  if (!array.values.is_defined())
    return input_error(path + ": " + name + ": expected numbers, found text. Save numbers");
  return std::move(array.values);
}

// Without the dimension that runs over channels.
Shape places_of(const Shape& shape) {
  Shape places = shape;
  if (!places.empty()) places.erase(places.begin() + (shape.size() <= 3 ? static_cast<int>(shape.size()) - 1 : 1));
  return places;
}

std::optional<ValueId> find_feature(const Graph& graph, const std::string& name) {
  for (graph::NodeId id : graph.order()) {
    for (ValueId output : graph.node(id).outputs) {
      if (output.is_valid() && graph.value(output).name == name) return output;
    }
    if (graph.address(id) == name && graph.node(id).outputs[0].is_valid()) return graph.node(id).outputs[0];
  }
  return {};
}

constexpr const char* kCutRemedy = ", or set cut_teacher: true to leave out those behind the student's";

std::string cut_remedy(const Shape& shape, const std::optional<std::int64_t>& classes) {
  return shape.size() == 2 && classes && shape[1] > *classes ? kCutRemedy : "";
}

Result<Tensor> first_columns(const Tensor& rows, std::int64_t count) {
  CTK_TRY(const Tensor all, cast(rows, DType::f32));
  CTK_TRY(Tensor cut, Tensor::zeros(DType::f32, {rows.shape()[0], count}));
  const auto from = all.values<float>();
  const auto width = static_cast<std::size_t>(rows.shape()[1]), kept = static_cast<std::size_t>(count);
  for (std::size_t row = 0; row * width < from.size(); ++row)
    std::ranges::copy(from.subspan(row * width, kept), cut.mutable_values<float>().subspan(row * kept).begin());
  return cut;
}

// The first output becomes its first `count` classes.
Status keep_classes(Graph& graph, const std::vector<Shape>& shapes, std::int64_t count) {
  CTK_TRY(const auto infos, graph::infer_shapes(graph, shapes, true));
  const ValueId output = graph.outputs()[0];
  const Shape& shape = infos[output.index].info.shape;
  const std::int64_t axis = shape.size() < 4 ? static_cast<std::int64_t>(shape.size()) - 1 : 1;
  graph::Value& value = graph.value(output);
  const ValueId all = graph.add_value(graph.unique_name(value.name + "_all"), value.dtype, value.shape);
  graph.move_producer(output, all);
  graph.replace_uses(output, all);
  if (auto& declared = graph.value(output).shape; declared && declared->size() == shape.size())
    (*declared)[static_cast<std::size_t>(axis)] = {count, ""};
  graph::Node node;
  node.name = graph.unique_name(graph.value(output).name + "_first");
  node.op_type = "Slice";
  node.inputs = {all};
  for (const auto& [name, number] :
       {std::pair<const char*, std::int64_t>{"_from", 0}, {"_until", count}, {"_axis", axis}}) {
    const Tensor one = Tensor::of<std::int64_t>({1}, std::span<const std::int64_t>(&number, 1));
    node.inputs.push_back(graph.add_constant(graph.unique_name(node.name + name), one));
  }
  node.outputs = {output};
  graph.add_node(std::move(node));
  return graph::verify(graph);
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

using Infos = std::vector<graph::InferredValue>;

const Shape* shape_of(const Infos& infos, ValueId id) {
  const graph::InferredValue& info = infos[id.index];
  return info.known && info.info.dtype == DType::f32 && info.info.shape.size() >= 2 ? &info.info.shape : nullptr;
}

// Values to which the network narrows, by their places.
std::map<Shape, std::vector<ValueId>> narrow_values(const Graph& graph, const Infos& infos) {
  std::map<Shape, std::vector<ValueId>> found;
  for (const graph::Cut& cut : graph::cuts_of(graph)) {
    const Shape* shape = shape_of(infos, cut.value);
    if (shape == nullptr || graph.is_output(cut.value) || shape->size() > 4) continue;
    std::vector<ValueId>& list = found[places_of(*shape)];
    if (list.empty() || list.back() != cut.value) list.push_back(cut.value);
  }
  return found;
}

bool gives_attention(const Graph& graph, const Infos& infos, ValueId value) {
  const graph::NodeId producer = graph.value(value).producer;
  if (!producer.is_valid() || graph.node(producer).outputs[0] != value) return false;
  const graph::Op op = graph.node(producer).op;
  const Shape* shape = shape_of(infos, value);
  return op == graph::Op::Attention || (op == graph::Op::Softmax && shape != nullptr && shape->size() == 4);
}

std::vector<ValueId> attention_values(const Graph& graph, const Infos& infos) {
  std::vector<ValueId> values;
  for (graph::NodeId id : graph.order()) {
    const ValueId output = graph.node(id).outputs[0];
    if (output.is_valid() && gives_attention(graph, infos, output)) values.push_back(output);
  }
  return values;
}

// Up to kMostPairs, each of the student's with the teacher's that stands as far along.
void add_pairs(const std::vector<ValueId>& student, const std::vector<ValueId>& teacher,
               std::vector<train::FeaturePair>& pairs) {
  const std::size_t n = student.size(), m = teacher.size(), count = std::min({kMostPairs, n, m});
  for (std::size_t i = 1; i <= count; ++i)
    pairs.push_back({student[(i * n + count - 1) / count - 1], teacher[(i * m + count - 1) / count - 1]});
}

}  // namespace

std::optional<std::int64_t> classes_of(const Graph& graph, const std::vector<Shape>& shapes) {
  const auto infos = graph::infer_shapes(graph, shapes, true);
  if (!infos || graph.outputs().empty()) return {};
  const graph::InferredValue& output = (*infos)[graph.outputs()[0].index];
  if (!output.known || output.info.shape.size() < 2) return {};
  const Shape& shape = output.info.shape;
  return shape.size() < 4 ? shape.back() : shape[1];
}

bool is_recorded(const std::string& teacher) {
  return teacher.ends_with(".npz");
}

Result<RecordedTeacher> load_recorded(const Session& session, const std::string& path, const std::string& key,
                                      bool cuts) {
  const auto wrong = [&](const std::string& expected, const std::string& found, const std::string& remedy) {
    return input_error(key + ": " + path + ": expected " + expected + ", found " + found + ". " + remedy);
  };
  CTK_TRY(const data::ZipFile file, data::ZipFile::open(path));
  CTK_TRY(Tensor logits, read_array(file, "logits", path));
  const bool has_logits = logits.is_defined();
  if (!has_logits) {
    CTK_TRY(logits, read_array(file, "probabilities", path));
  }
  CTK_TRY(const Tensor labels, read_array(file, "labels", path));
  const Tensor& rows = logits.is_defined() ? logits : labels;
  if (!rows.is_defined()) {
    return wrong("an array \"logits\", \"probabilities\" or \"labels\"", "none of them", "Save one");
  }
  if (session.splits.train->source->spec().text) {
    return wrong("samples with one row each", "text, which has a row a token",
                 "Train on text that the teacher wrote instead: it is data.train then");
  }
  std::size_t most = 0;
  for (std::size_t index : session.splits.train->indices)
    most = std::max(most, session.splits.train->source->row(index) + 1);
  const auto count = rows.shape().empty() ? 0 : static_cast<std::size_t>(rows.shape()[0]);
  if (count < most) {
    return wrong("a row for each of the " + std::to_string(most) + " that data.train reads of its file",
                 std::to_string(count), "Record the teacher on the whole file, in its order");
  }
  const auto classes = classes_of(session.float_graph(), session.model.sample_shapes);
  RecordedTeacher recorded;
  if (logits.is_defined()) {
    if (cuts && classes && logits.shape().size() == 2 && logits.shape()[1] > *classes) {
      CTK_TRY(logits, first_columns(logits, *classes));
    }
    if (logits.shape().size() != 2 || (classes && logits.shape()[1] != *classes)) {
      return wrong(
          "[rows, " + (classes ? std::to_string(*classes) : "classes") + "]", ctk::to_string(logits.shape()),
          "Record a teacher of the network's classes, in the same order" + cut_remedy(logits.shape(), classes));
    }
    CTK_TRY(recorded.logits, cast(logits, DType::f32));
    recorded.logits = recorded.logits.clone();
    for (float& value : recorded.logits.mutable_values<float>()) {
      if (!std::isfinite(value) || (!has_logits && (value < 0 || value > 1))) {
        return wrong(has_logits ? "numbers" : "probabilities from 0 to 1", "\"" + std::to_string(value) + "\"",
                     "Record the teacher again");
      }
      if (!has_logits) value = std::log(std::max(value, kLeastProbability));
    }
    return recorded;
  }
  CTK_TRY(const Tensor wide, cast(labels, DType::i64));
  const auto values = wide.values<std::int64_t>();
  recorded.labels.assign(values.begin(), values.end());
  for (std::int64_t label : recorded.labels) {
    if (label >= 0 && (!classes || label < *classes)) continue;
    return wrong("labels from 0 to below " + (classes ? std::to_string(*classes) : "the classes"),
                 "\"" + std::to_string(label) + "\"", "Record a teacher of the network's classes");
  }
  return recorded;
}

Result<Graph> load_teacher(const Session& session, const std::string& path, const std::string& key, bool cuts) {
  CTK_TRY(LoadedModel teacher, load_model(path));
  graph::widen_constants(teacher.graph);
  const auto infos = [](const Graph& graph) {
    std::string text;
    for (const data::InputInfo& input : input_infos(graph)) {
      text += std::string(name_of(input.dtype)) + " [";
      for (std::size_t d = 0; d < input.shape.size(); ++d) {
        text += (d == 0 ? "" : ",") + (input.shape[d] < 0 ? "?" : std::to_string(input.shape[d]));
      }
      text += "] ";
    }
    return text;
  };
  const Graph& student = session.float_graph();
  if (teacher.graph.inputs().size() != student.inputs().size()) {
    return input_error(key + ": expected a teacher with the inputs of the student, " + infos(student) + ", found " +
                       infos(teacher.graph) + "in " + path + ". Give a teacher of the same inputs");
  }
  const auto mine = classes_of(student, session.model.sample_shapes);
  const auto theirs = classes_of(teacher.graph, session.model.sample_shapes);
  if (mine && theirs && cuts && *theirs > *mine) {
    CTK_CHECK(keep_classes(teacher.graph, session.model.sample_shapes, *mine));
  } else if (mine && theirs && *mine != *theirs) {
    return input_error(key + ": expected the student's " + std::to_string(*mine) + " classes, found " +
                       std::to_string(*theirs) + " in " + path +
                       ". Give a teacher of the same classes in the same order" + (*theirs > *mine ? kCutRemedy : ""));
  }
  return std::move(teacher.graph);
}

Result<std::vector<train::FeaturePair>> pair_features(const Graph& student, const Graph& teacher,
                                                      const std::vector<Shape>& shapes,
                                                      const std::vector<std::string>& features, const std::string& key,
                                                      bool of_attention) {
  std::vector<train::FeaturePair> pairs;
  if (features.empty()) return pairs;
  CTK_TRY(const Infos mine, graph::infer_shapes(student, shapes, true));
  CTK_TRY(const Infos theirs, graph::infer_shapes(teacher, shapes, true));
  if (features.size() == 1 && features[0] == "auto") {
    if (of_attention) {
      add_pairs(attention_values(student, mine), attention_values(teacher, theirs), pairs);
      if (!pairs.empty()) return pairs;
      return config_error(key +
                          ": auto: expected Attention nodes in student and teacher, found none in one of them. "
                          "Use feature_loss: attention or mse");
    }
    const auto of_teacher = narrow_values(teacher, theirs);
    for (const auto& [places, values] : narrow_values(student, mine)) {
      const auto same = of_teacher.find(places);
      if (same != of_teacher.end()) add_pairs(values, same->second, pairs);
    }
    if (!pairs.empty()) return pairs;
    return config_error(key +
                        ": auto: expected values of one resolution to which both networks narrow, found none. "
                        "Name pairs: [\"student value = teacher value\"]");
  }
  for (const std::string& text : features) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) {
      return config_error(key + ": expected \"student value = teacher value\" or auto alone, found \"" +
                          printable(text) + "\". Name both");
    }
    const std::string names[] = {trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))};
    const auto student_value = find_feature(student, names[0]), teacher_value = find_feature(teacher, names[1]);
    if (!student_value || !teacher_value) {
      return config_error(key + ": expected a value or node of the " + (student_value ? "teacher" : "student") +
                          ", found \"" + printable(names[student_value ? 1 : 0]) +
                          "\". `compress graph show` lists them");
    }
    if (of_attention) {
      if (!gives_attention(student, mine, *student_value) || !gives_attention(teacher, theirs, *teacher_value)) {
        return config_error(key + ": " + printable(text) +
                            ": expected what Attention nodes give, or a Softmax over keys, found another value. Name "
                            "such nodes, or use feature_loss: attention or mse");
      }
      pairs.push_back({*student_value, *teacher_value});
      continue;
    }
    const Shape *a = shape_of(mine, *student_value), *b = shape_of(theirs, *teacher_value);
    if (a == nullptr || b == nullptr || a->size() > 4 || places_of(*a) != places_of(*b)) {
      const auto told = [](const Shape* shape) {
        return shape == nullptr ? std::string("no floats") : ctk::to_string(*shape);
      };
      return config_error(key + ": " + printable(text) +
                          ": expected values of the same places, channels aside, found " + told(a) + " and " + told(b) +
                          ". Pair values of one resolution");
    }
    pairs.push_back({*student_value, *teacher_value});
  }
  return pairs;
}

}  // namespace ctk::pipeline
