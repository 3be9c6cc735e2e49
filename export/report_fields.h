// Which key of report.json each field is, in order: read by the writer and the reader alike.
#pragma once

#include "export/report.h"

namespace ctk::exporter {

// Each fields() calls archive(key, field) once a key; the archive is a writer or a reader.
template <class Archive>
void fields(Archive& archive, SplitRow& row) {
  archive("source", row.source);
  archive("count", row.count);
  archive("fingerprint", row.fingerprint);
}
template <class Archive>
void fields(Archive& archive, ConfigPart& part) {
  archive("path", part.path);
  archive("fingerprint", part.fingerprint);
}
template <class Archive>
void fields(Archive& archive, MachinePart& part) {
  archive("cpu", part.cpu);
  archive("isa", part.isa);
  archive("cores", part.cores);
  archive("memory_bytes", part.memory_bytes);
}
template <class Archive>
void fields(Archive& archive, ModelPart& part) {
  archive("path", part.path);
  archive("sha256", part.sha256);
  archive("format", part.format);
  archive("parameters", part.parameters);
  archive("macs", part.macs);
}
template <class Archive>
void fields(Archive& archive, MetricPart& part) {
  archive("name", part.name);
  archive.direction("better", part.higher_is_better);
  archive("baseline", part.baseline);
  archive("final", part.final);
  archive("standard_error", part.standard_error);
  archive("drop", part.drop);
}
template <class Archive>
void fields(Archive& archive, SizePart& part) {
  archive("before", part.before);
  archive("after", part.after);
}
template <class Archive>
void fields(Archive& archive, LatencyFigure& part) {
  archive("median", part.median);
  archive("p95", part.p95);
  archive("runs", part.runs);
}
template <class Archive>
void fields(Archive& archive, PhaseFigures& part) {
  archive("baseline", part.baseline);
  archive("final", part.final);
}
template <class Archive>
void fields(Archive& archive, PhasesPart& part) {
  archive("prefill", part.prefill);
  archive("decode", part.decode);
}
template <class Archive>
void fields(Archive& archive, LatencyPart& part) {
  archive.constant("unit", "us");
  archive("threads", part.threads);
  archive("baseline", part.baseline);
  archive("final", part.final);
  archive.if_present("phases", part.phases);
}
template <class Archive>
void fields(Archive& archive, MemoryPart& part) {
  archive("baseline_peak", part.baseline_peak);
  archive("final_peak", part.final_peak);
  archive("run_peak_rss", part.run_peak_rss);
}
template <class Archive>
void fields(Archive& archive, BudgetRow& row) {
  archive("name", row.name);
  archive("unit", row.unit);
  archive("limit", row.limit);
  archive("predicted", row.predicted);
  archive("measured", row.measured);
  archive("met", row.met);
  archive("price", row.price);
  archive("error", row.error);
  archive("role", row.role);
}
template <class Archive>
void fields(Archive& archive, LayerRow& row) {
  archive("name", row.name);
  archive("op", row.op);
  archive("shape", row.shape);
  archive("macs", row.macs);
  archive("scheme", row.scheme);
  archive("method", row.method);
  archive("loss", row.loss);
  archive("loss_error", row.loss_error);
  archive("latency_us", row.latency_us);
  archive("bytes", row.bytes);
  archive("reason", row.reason);
  archive("rows_seen", row.rows_seen);
  archive("error_rtn", row.error_rtn);
  archive("error_method", row.error_method);
  archive("weight_bits", row.weight_bits);
}
template <class Archive>
void fields(Archive& archive, FinalistRow& row) {
  archive("name", row.name);
  archive("method", row.method);
  archive("predicted", row.predicted);
  archive("measured", row.measured);
  archive("standard_error", row.standard_error);
  archive("metric", row.metric);
  archive("chosen", row.is_chosen);
  archive("codes", row.codes);
}
template <class Archive>
void fields(Archive& archive, LossRoundRow& row) {
  archive("predicted", row.predicted);
  archive("measured", row.measured);
  archive("scale", row.scale);
  archive("changed", row.changed);
  archive("result", row.result);
}
template <class Archive>
void fields(Archive& archive, CertificatePart& part) {
  archive("loss", part.loss);
  archive("bound", part.bound);
  archive("gap", part.gap);
  archive("proved_optimal", part.proved_optimal);
  archive("corrections", part.corrections);
  archive("loss_scale", part.loss_scale);
  archive("rounds", part.rounds);
}
template <class Archive>
void fields(Archive& archive, BudgetFigures& part) {
  archive("size", part.size);
  archive("latency", part.latency);
  archive("peak_memory", part.peak_memory);
  archive("bits", part.bits);
  archive("latency_decode", part.latency_decode);
  archive("latency_prefill", part.latency_prefill);
}
template <class Archive>
void fields(Archive& archive, FrontRow& row) {
  archive("loss", row.loss);
  archive("cost", row.cost);
  archive("price", row.price);
  archive("chosen", row.is_chosen);
}
template <class Archive>
void fields(Archive& archive, TrialRow& row) {
  archive("limit", row.limit);
  archive("cost", row.cost);
  archive("loss", row.loss);
  archive("measured", row.measured);
  archive("metric", row.metric);
  archive("drop", row.drop);
  archive("within", row.is_within);
}
template <class Archive>
void fields(Archive& archive, PairRow& row) {
  archive("first", row.first);
  archive("first_scheme", row.first_scheme);
  archive("second", row.second);
  archive("second_scheme", row.second_scheme);
  archive("sum", row.sum);
  archive("together", row.together);
  archive("loss", row.loss);
}
template <class Archive>
void fields(Archive& archive, SearchPart& part) {
  archive("metric", part.metric);
  archive("objective", part.objective);
  archive("front", part.front);
  archive("front_seconds", part.front_seconds);
  archive("trials", part.trials);
  archive("pairs", part.pairs);
}
template <class Archive>
void fields(Archive& archive, RevertRow& row) {
  archive("name", row.name);
  archive("from", row.from);
  archive("to", row.to);
  archive("benefit", row.benefit);
  archive("bytes", row.bytes);
  archive("kept", row.is_kept);
}
template <class Archive>
void fields(Archive& archive, FloorPart& part) {
  archive("metric", part.metric);
  archive("limit", part.limit);
  archive("drop_before", part.drop_before);
  archive("drop_after", part.drop_after);
  archive("kl_before", part.kl_before);
  archive("kl_after", part.kl_after);
  archive("evaluations", part.evaluations);
  archive("most_evaluations", part.most_evaluations);
  archive("layers", part.layers);
}
template <class Archive>
void fields(Archive& archive, SkippedRow& row) {
  archive("name", row.name);
  archive("op", row.op);
  archive("reason", row.reason);
}
template <class Archive>
void fields(Archive& archive, StageRow& row) {
  archive("name", row.name);
  archive("seconds", row.seconds);
  archive("cached", row.cached);
  archive("peak_rss", row.peak_rss);
  archive("metric_before", row.metric_before);
  archive("metric_after", row.metric_after);
  archive("accepted", row.accepted);
  archive("parameters", row.parameters);
  archive("macs", row.macs);
  archive("weight_bytes", row.weight_bytes);
  archive("latency_us", row.latency_us);
}
template <class Archive>
void fields(Archive& archive, FileRow& row) {
  archive("path", row.path);
  archive("format", row.format);
  archive("bytes", row.bytes);
  archive("sha256", row.sha256);
}
template <class Archive>
void fields(Archive& archive, WarningRow& row) {
  archive("code", row.code);
  archive("text", row.text);
}
template <class Archive>
void fields(Archive& archive, RangeRow& row) {
  archive("name", row.name);
  archive("low", row.low);
  archive("high", row.high);
  archive("count", row.count);
  archive("source", row.source);
}
template <class Archive>
void fields(Archive& archive, SkippedSampleRow& row) {
  archive("split", row.split);
  archive("index", row.index);
  archive("sample", row.sample);
  archive("tensor", row.tensor);
  archive("reason", row.reason);
}
template <class Archive>
void fields(Archive& archive, CheckRow& row) {
  archive("against", row.against);
  archive("file", row.file);
  archive("agreement", row.agreement);
  archive("max_error", row.max_error);
  archive("metric", row.metric);
  archive("result", row.result);
}
template <class Archive>
void fields(Archive& archive, CurvePointRow& row) {
  archive("width", row.width);
  archive("loss", row.loss);
}
template <class Archive>
void fields(Archive& archive, PruneRow& row) {
  archive("name", row.name);
  archive("units", row.units);
  archive("kept", row.kept);
  archive("reason", row.reason);
  archive("curve", row.curve);
}
template <class Archive>
void fields(Archive& archive, TransformRow& row) {
  archive("method", row.method);
  archive("layers", row.layers);
  archive("where", row.where);
  archive("strength", row.strength);
  archive("error_before", row.error_before);
  archive("error_after", row.error_after);
  archive("reason", row.reason);
}
template <class Archive>
void fields(Archive& archive, TransformTrialRow& row) {
  archive("methods", row.methods);
  archive("measured", row.measured);
  archive("standard_error", row.standard_error);
  archive("kept", row.is_kept);
}
template <class Archive>
void fields(Archive& archive, RepairRow& row) {
  archive("name", row.name);
  archive("error_before", row.error_before);
  archive("error_after", row.error_after);
}
template <class Archive>
void fields(Archive& archive, Report& report) {
  archive("version", report.version);
  archive("command", report.command);
  archive("config", report.config);
  archive("seed", report.seed);
  archive("threads", report.threads);
  archive("machine", report.machine);
  archive("model", report.model);
  archive.keyed_by_name("splits", report.splits);
  archive("metric", report.metric);
  archive("size", report.size);
  archive("latency", report.latency);
  archive("memory", report.memory);
  archive("budget", report.budget);
  archive("layers", report.layers);
  archive("finalists", report.finalists);
  archive.if_present("certificate", report.certificate);
  archive.if_present("search", report.search);
  archive.if_present("floor", report.floor);
  archive("skipped", report.skipped);
  archive("stages", report.stages);
  archive("files", report.files);
  archive("ranges", report.ranges);
  archive("skipped_samples", report.skipped_samples);
  archive("checks", report.checks);
  archive("pruned", report.pruned);
  archive("repaired", report.repaired);
  archive("transforms", report.transforms);
  archive("transform_trials", report.transform_trials);
  archive("rewrites", report.rewrites);
  archive("output", report.output);
  archive("warnings", report.warnings);  // last: writing the others may add some
}

}  // namespace ctk::exporter
