// Patterns of JSON schemas made ready for llguidance.
//
// Engines of regular expressions differ in corners, and llguidance has a fault of its own: where a class has every
// control character (as [^"] does), it lets the escapes \" and \\ stand for it even if the class has neither character.
// U+0001 can be written only as \u0001, which is never offered; so taking it out of every negated class changes no
// text, and the fault is not met.
#pragma once

#include <string>
#include <string_view>

namespace oga::grammar {

struct PreparedPattern {
  std::string text;   // to compile
  std::string fault;  // why the pattern is refused, as the end of a sentence; empty when it is not
};

PreparedPattern PreparePattern(std::string_view pattern);

}  // namespace oga::grammar
