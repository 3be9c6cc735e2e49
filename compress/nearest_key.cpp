#include "compress/nearest_key.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace ctk::pipeline {
namespace {

// Longer words are compared by their first part only: keys and names are short, what is not is hostile.
constexpr std::size_t kMostLetters = 200;

std::string lowered(std::string_view word) {
  std::string low(word.substr(0, kMostLetters));
  for (char& letter : low) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return low;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kMostLetters);
  b = b.substr(0, kMostLetters);
  const std::size_t width = b.size() + 1;
  std::vector<int> before(width), previous(width), current(width);
  for (std::size_t j = 0; j < width; ++j) previous[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < width; ++j) {
      const int replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({replace, previous[j] + 1, current[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  int best_distance = -1;
  const std::string low = lowered(word);
  for (const std::string_view candidate : candidates) {
    const int distance = edit_distance(low, lowered(candidate));
    if (best_distance < 0 || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

bool is_near(std::string_view word, std::string_view candidate) {
  if (word.empty() || candidate.empty()) return false;
  const std::string a = lowered(word), b = lowered(candidate);
  if (std::min(a.size(), b.size()) >= 3 && (a.find(b) != std::string::npos || b.find(a) != std::string::npos)) {
    return true;
  }
  const int longest = static_cast<int>(std::max(a.size(), b.size()));
  const int shortest = static_cast<int>(std::min(a.size(), b.size()));
  const int distance = edit_distance(a, b);
  return distance < shortest && distance <= std::max(1, (longest + 2) / 3);
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view best = nearest(word, candidates);
  if (!is_near(word, best)) return "";
  return "; did you mean \"" + std::string(best) + "\"?";
}

}  // namespace ctk::pipeline
