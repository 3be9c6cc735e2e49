// report.html: one file without external resources, light or dark as the reader's system is set.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "export/figures.h"
#include "export/report.h"
#include "export/report_sections.h"

namespace ctk::exporter {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5d6671; --paper: #ffffff; --line: #d8dde3; --soft: #f4f6f8;
  --bits: #2563a8; --loss: #c2571a; --good: #1a7f37; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #9aa4af; --paper: #14181d; --line: #323a43;
  --soft: #1c2229; --bits: #6aa6e8; --loss: #ef9a62; --good: #5fc27e; --bad: #f0857c; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
p { margin: .3rem 0; } .dim { color: var(--dim); } code { font-family: ui-monospace, monospace; font-size: .92em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { font-weight: 600; color: var(--dim); } .n { text-align: right; white-space: nowrap; }
#summary td { font-size: 1.05rem; } .yes { color: var(--good); } .no { color: var(--bad); font-weight: 600; }
td.hash { font-family: ui-monospace, monospace; font-size: .8em; word-break: break-all; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .dim { fill: var(--dim); }
svg .bits { fill: var(--bits); } svg .loss { fill: var(--loss); } svg .rule { stroke: var(--line); }
)";

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += static_cast<unsigned char>(letter) < 32 && letter != '\n' && letter != '\t' ? ' ' : letter;
    }
  }
  return safe;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string table(const Section& section) {
  std::string html = "<div class=\"scroll\"><table" + std::string(section.title == "Summary" ? " id=\"summary\"" : "") +
                     "><thead><tr>";
  for (std::size_t i = 0; i < section.header.size(); ++i) {
    html += std::string(section.is_number[i] ? "<th class=\"n\">" : "<th>") + escaped(section.header[i]) + "</th>";
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : section.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string classes = section.is_number[i] ? "n" : "";
      if (section.header[i] == "met" || section.header[i] == "accepted")
        classes = row[i] == "yes" ? "yes" : row[i] == "no" ? "no" : "";
      if (section.header[i] == "SHA-256" || section.header[i] == "fingerprint") classes = "hash";
      html += classes.empty() ? "<td>" : "<td class=\"" + classes + "\">";
      html += escaped(row[i]) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

// Two bars a layer: bits of a weight (of 32) and loss (of the greatest loss). NaN and absent losses draw nothing.
std::string chart(const std::vector<LayerRow>& layers) {
  constexpr double kName = 260, kBar = 300, kGap = 90, kRow = 20, kTop = 26;
  double most = 0;
  for (const LayerRow& layer : layers) {
    if (layer.loss && std::isfinite(*layer.loss)) most = std::max(most, *layer.loss);
  }
  const double width = kName + 2 * (kBar + kGap), height = kTop + kRow * static_cast<double>(layers.size()) + 6;
  const double loss_left = kName + kBar + kGap;
  std::string svg = "<div class=\"scroll\"><svg role=\"img\" aria-label=\"bits and loss of each layer\" width=\"" +
                    number(width) + "\" height=\"" + number(height) + "\" viewBox=\"0 0 " + number(width) + " " +
                    number(height) + "\">\n";
  svg += "<text class=\"dim\" x=\"" + number(kName) + "\" y=\"14\">bits a weight</text><text class=\"dim\" x=\"" +
         number(loss_left) + "\" y=\"14\">loss</text>\n";
  const auto bar = [&](const char* kind, double left, double y, double share, const std::string& label) {
    const double length = std::clamp(share, 0.0, 1.0) * kBar;
    svg += "<rect class=\"" + std::string(kind) + "\" x=\"" + number(left) + "\" y=\"" + number(y + 4) + "\" width=\"" +
           number(length) + "\" height=\"12\" rx=\"2\"/><text x=\"" + number(left + length + 6) + "\" y=\"" +
           number(y + 14) + "\">" + escaped(label) + "</text>";
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerRow& layer = layers[i];
    const double y = kTop + kRow * static_cast<double>(i);
    const std::string name = layer.name.size() > 36 ? "..." + layer.name.substr(layer.name.size() - 33) : layer.name;
    svg += "<g><title>" + escaped(layer.name + ": " + layer.scheme) + "</title><text x=\"0\" y=\"" + number(y + 14) +
           "\">" + escaped(name) + "</text>";
    bar("bits", kName, y, layer.weight_bits / 32, format_number(layer.weight_bits) + "  " + layer.scheme);
    if (layer.loss && std::isfinite(*layer.loss)) {
      bar("loss", loss_left, y, most > 0 ? *layer.loss / most : 0, format_number(*layer.loss));
    }
    svg += "</g>\n";
  }
  return svg + "</svg></div>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Compression report: " +
      escaped(report.model.path) + "</title>\n<style>" + kStyle + "</style></head>\n<body>\n";
  html += "<h1>Compression report</h1>\n<p>" + escaped(report.model.path) + ": " +
          std::to_string(report.model.parameters) + " parameters, " + std::to_string(report.model.macs) +
          " multiply-adds a sample</p>\n<p class=\"dim\">Measured on " + escaped(report.machine.cpu) + " (" +
          escaped(report.machine.isa) + ") with " + format_threads(report.latency.threads) + ". Seed " +
          std::to_string(report.seed) + ", configuration " + escaped(report.config.path) + ", compress " +
          escaped(report.version) + ".</p>\n<p class=\"dim\"><code>" + escaped(report.command) + "</code></p>\n";
  for (const Section& section : sections_of(report)) {
    html += "<h2>" + escaped(section.title) + "</h2>\n";
    if (!section.note.empty()) html += "<p class=\"dim\">" + escaped(section.note) + "</p>\n";
    if (section.title == "Layers") html += chart(report.layers);
    html += table(section);
  }
  if (!report.rewrites.empty()) {
    html += "<h2>Rewrites</h2>\n<ul>\n";
    for (const std::string& rewrite : report.rewrites) html += "<li>" + escaped(rewrite) + "</li>\n";
    html += "</ul>\n";
  }
  return html + "</body></html>\n";
}

}  // namespace ctk::exporter
