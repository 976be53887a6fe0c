// A locale as hosts have it in Berlin and Istanbul at once: the decimal point is a comma, 'I' is not the capital of 'i'.
//
// It is compiled by the test itself from the few lines below, so that no machine lacks it and no test can pass by not
// having had it.
#pragma once

#include <gtest/gtest.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "support/temp_folder.h"

namespace oga::testing {

class CommaLocale {
 public:
  static constexpr const char* kName = "xx_XX";

  CommaLocale() {
    WriteSources();
    // It exits with 1 because the categories that no test needs are missing; what counts is the check in Enter.
    const std::string command = "cd '" + folder_.path().native() + "' && localedef -c -i source -f charmap ./" + kName;
    if (std::system((command + " >/dev/null 2>&1").c_str()) == -1) ADD_FAILURE() << "no shell to run localedef in";
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
  }
  ~CommaLocale() {
    Leave();
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  // Sets it for the process, and checks that it really is as described.
  static void Enter() {
    ASSERT_NE(std::setlocale(LC_ALL, kName), nullptr) << "localedef made no usable locale; is it installed?";
    char half[8];
    std::snprintf(half, sizeof(half), "%.1f", 0.5);
    ASSERT_STREQ(half, "0,5");
    ASSERT_NE(std::tolower('I'), 'i');
  }
  static void Leave() { std::setlocale(LC_ALL, "C"); }

 private:
  void WriteSources() const {
    std::ofstream charmap(folder_.path() / "charmap");
    charmap << "<code_set_name> OGA-TEST\n<comment_char> %\n<escape_char> /\n<mb_cur_min> 1\n<mb_cur_max> 1\nCHARMAP\n";
    for (int byte = 0; byte < 128; ++byte) {
      char line[32];
      std::snprintf(line, sizeof(line), "<U%04X> /x%02x X\n", byte, byte);
      charmap << line;
    }
    charmap << "<U0130> /xdd X\n<U0131> /xfd X\nEND CHARMAP\n";
    std::ofstream(folder_.path() / "source") << "comment_char %\nescape_char /\n"
                                                "LC_CTYPE\n"
                                                "upper <U0041>;<U0049>;<U0130>\n"
                                                "lower <U0061>;<U0069>;<U0131>\n"
                                                "toupper (<U0061>,<U0041>);(<U0069>,<U0130>);(<U0131>,<U0049>)\n"
                                                "tolower (<U0041>,<U0061>);(<U0130>,<U0069>);(<U0049>,<U0131>)\n"
                                                "END LC_CTYPE\n"
                                                "LC_NUMERIC\n"
                                                "decimal_point \"<U002C>\"\nthousands_sep \"<U002E>\"\ngrouping 3;3\n"
                                                "END LC_NUMERIC\n";
  }

  const test::TempFolder folder_;
};

}  // namespace oga::testing
