#include <oga/string_array.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

using StringArrayHandle = Owned<OgaStringArray, OgaDestroyStringArray>;

size_t Size(const OgaStringArray* array) {
  size_t count = 99;
  Must(OgaStringArrayGetCount(array, &count));
  return count;
}

std::string At(const OgaStringArray* array, size_t index) {
  const char* string = nullptr;
  Must(OgaStringArrayGetString(array, index, &string));
  return string;
}

TEST(StringArray, StartsEmptyAndGrows) {
  OgaStringArray* array = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateStringArray(&array)));
  const StringArrayHandle owned(array);
  EXPECT_EQ(Size(array), 0u);
  char text[] = "changed later";
  EXPECT_TRUE(Succeeds(OgaStringArrayAddString(array, text)));
  text[0] = 'X';
  EXPECT_TRUE(Succeeds(OgaStringArrayAddString(array, "")));
  EXPECT_EQ(Size(array), 2u);
  EXPECT_EQ(At(array, 0), "changed later");
  EXPECT_EQ(At(array, 1), "");
}

TEST(StringArray, CopiesAListOfStrings) {
  const char* const strings[] = {"a", "ü", "😀"};
  OgaStringArray* array = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateStringArrayFromStrings(strings, 3, &array)));
  const StringArrayHandle owned(array);
  EXPECT_EQ(Size(array), 3u);
  EXPECT_EQ(At(array, 2), "😀");
}

TEST(StringArray, TakesAnEmptyListWithoutAPointer) {
  OgaStringArray* array = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateStringArrayFromStrings(nullptr, 0, &array)));
  const StringArrayHandle owned(array);
  EXPECT_EQ(Size(array), 0u);
}

TEST(StringArray, RefusesANullEntryByItsIndex) {
  const char* const strings[] = {"a", nullptr};
  OgaStringArray* array = nullptr;
  EXPECT_TRUE(Fails(OgaCreateStringArrayFromStrings(strings, 2, &array), OgaStatusCode_InvalidArgument,
                    "strs[1] must not be null."));
  EXPECT_EQ(array, nullptr);
}

TEST(StringArray, RefusesAnIndexOutOfRange) {
  OgaStringArray* array = nullptr;
  ASSERT_TRUE(Succeeds(OgaCreateStringArray(&array)));
  const StringArrayHandle owned(array);
  Must(OgaStringArrayAddString(array, "only"));
  const char* string = "before";
  EXPECT_TRUE(
      Fails(OgaStringArrayGetString(array, 1, &string), OgaStatusCode_InvalidArgument, "index is 1; the list has 1"));
  EXPECT_EQ(string, nullptr);
}

}  // namespace
}  // namespace oga::capi_test
