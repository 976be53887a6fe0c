/* OgaStringArray: a list of strings. Not bound to an engine; one thread at a time. */
#ifndef OGA_STRING_ARRAY_H_
#define OGA_STRING_ARRAY_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Creates an empty list. :param out: own; free with OgaDestroyStringArray */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateStringArray(OgaStringArray** out);

/** Creates a list of copies of `count` strings. :param out: own; free with OgaDestroyStringArray */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateStringArrayFromStrings(const char* const* strs, size_t count,
                                                                   OgaStringArray** out);

/** Frees a list. NULL is accepted. */
OGA_EXPORT void OGA_API_CALL OgaDestroyStringArray(OgaStringArray* string_array);

/** Appends a copy of a string. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaStringArrayAddString(OgaStringArray* string_array, const char* str);

/** The number of strings. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaStringArrayGetCount(const OgaStringArray* string_array, size_t* out);

/** One string. :param out: borrow, until the list changes. InvalidArgument when the index is out of range. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaStringArrayGetString(const OgaStringArray* string_array, size_t index,
                                                           const char** out);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_STRING_ARRAY_H_ */
