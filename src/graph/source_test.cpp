// SPDX-License-Identifier: Apache-2.0
#include "graph/source.hpp"

#include <gtest/gtest.h>

namespace ke {
namespace {

struct Case {
  const char* what;
  const char* a;
  const char* b;
  bool same;
};

TEST(NormaliseSource, ComparesKernelsNotText) {
  const Case cases[] = {
      {"comments", "int a; // one\nint /* two */ b;", "int a;\nint b;", true},
      {"layout", "int a=1 ;\n\n  f( a );", "int a=1;f(a);", true},
      {"words stay apart", "int a;", "inta;", false},
      {"operators stay apart", "a + ++b;", "a ++ + b;", false},
      {"a value", "int a = 1;", "int a = 2;", false},
      {"text in quotes", "f(\"a  b\");", "f(\"a b\");", false},
      {"a comment inside quotes", "f(\"// x\");", "f(\"// y\");", false},
      {"an escaped quote", "f(\"\\\"// x\");g();", "f(\"\\\"// x\"); g();", true},
      {"a digit separator is no quote", "int a = 1'000; // x", "int a = 1'000; // y", true},
      {"a raw string", "f(R\"(a // b)\");", "f(R\"(a // c)\");", false},
      {"flags are part of the build", "// ke:flags -ffast-math\nint a;", "int a;", false},
      {"tunables are not", "// ke:tune N in {1, 2}\nint a;", "int a;", true},
      {"a directive ends with its line", "#define N 4\nint a;", "#define N 4 int a;", false},
      {"directives continue", "#define N \\\n 4\nint a;", "#define N 4\nint a;", true},
      {"a blank makes a macro an object", "#define F (x)\n", "#define F(x)\n", false},
      {"in Python, // divides", "class ModelNew:\n a = b // c", "class ModelNew:\n a = b // d",
       false},
      {"and blanks begin a line", "class ModelNew:\n  b", "class ModelNew:\nb", false},
      {"its comment lines do not count", "class ModelNew:\n # x\n a = 1 \n",
       "class ModelNew:\n a = 1", true},
      {"a commented blank separates", "int/**/a;", "int a;", true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.what);
    EXPECT_EQ(normalised_digest(one.a) == normalised_digest(one.b), one.same)
        << normalise_source(one.a) << "\n--\n"
        << normalise_source(one.b);
  }
}

TEST(NormaliseSource, SurvivesUnfinishedText) {
  for (const char* text : {"", "\"", "'", "/*", "//", "R\"", "R\"x(", "\\", "#", "\"\\"}) {
    SCOPED_TRACE(text);
    normalise_source(text);
  }
}

TEST(NormaliseSource, IsAFixedPoint) {
  const std::string once = normalise_source("#include <a>\n// ke:flags -x\nint a = b - -c; // d\n");
  EXPECT_EQ(normalise_source(once), once);
}

}  // namespace
}  // namespace ke
