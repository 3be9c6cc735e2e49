#include "compress/config_schema.h"

namespace ctk::pipeline {

using enum ValueKind;

std::string_view title_of(ValueKind kind) {
  switch (kind) {
    case section:
      return "a map of keys";
    case stage_list:
      return "a list of stages";
    case text:
      return "a word";
    case path:
      return "a path";
    case boolean:
      return "true or false";
    case integer:
      return "an integer";
    case number:
      return "a number";
    case size:
      return "a size like \"60 kB\" or a share like \"20 %\"";
    case latency:
      return "a time like \"0.20 ms\" or a share like \"60 %\"";
    case drop:
      return "a drop like \"1.0 pt\" or \"1 %\"";
    case name:
      return "a name";
    case name_list:
      return "a list of names";
    case scheme:
      return "a scheme like \"w8a8_c\"";
    case scheme_list:
      return "a list of schemes like [w8a8_c, fp16]";
    case text_list:
      return "a list of words";
    case number_list:
      return "a list of numbers";
    case text_map:
      return "a map of words";
    case target:
      return "cpu or the path of a device card";
  }
  return "a value";
}

}  // namespace ctk::pipeline
