/* OgaSequences: a list of token sequences. Not bound to an engine; one thread at a time. */
#ifndef OGA_SEQUENCES_H_
#define OGA_SEQUENCES_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/** Creates an empty list. :param out: own; free with OgaDestroySequences */
OGA_EXPORT OgaResult* OGA_API_CALL OgaCreateSequences(OgaSequences** out);

/** Frees a list. NULL is accepted. */
OGA_EXPORT void OGA_API_CALL OgaDestroySequences(OgaSequences* sequences);

/** The number of sequences. NULL gives 0. */
OGA_EXPORT size_t OGA_API_CALL OgaSequencesCount(const OgaSequences* sequences);

/**
 * Appends one sequence of `token_cnt` tokens (copied). `token_ptr` may be NULL when the count is 0.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaAppendTokenSequence(const int32_t* token_ptr, size_t token_cnt,
                                                          OgaSequences* sequences);

/** Appends a token to a sequence; an index equal to the count starts a new one, a larger one is InvalidArgument. */
OGA_EXPORT OgaResult* OGA_API_CALL OgaAppendTokenToSequence(int32_t token, OgaSequences* sequences,
                                                            size_t sequence_index);

/** The number of tokens in a sequence; 0 when the index is out of range. */
OGA_EXPORT size_t OGA_API_CALL OgaSequencesGetSequenceCount(const OgaSequences* sequences, size_t sequence_index);

/** The tokens of a sequence. :return: borrow, until the list changes; NULL when the index is out of range */
OGA_EXPORT const int32_t* OGA_API_CALL OgaSequencesGetSequenceData(const OgaSequences* sequences,
                                                                   size_t sequence_index);

#if defined(__cplusplus)
}
#endif

#endif /* OGA_SEQUENCES_H_ */
