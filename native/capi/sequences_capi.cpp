#include <algorithm>
#include <utility>

#include "capi/boundary.h"

using oga::capi::Guard;
using oga::capi::Require;
using oga::capi::RequireOut;

namespace {

const std::vector<int32_t>* Find(const OgaSequences* sequences, size_t index) {
  if (sequences == nullptr || index >= sequences->sequences.size()) return nullptr;
  return &sequences->sequences[index];
}

}  // namespace

OgaResult* OGA_API_CALL OgaCreateSequences(OgaSequences** out) {
  return Guard([&] {
    RequireOut<OgaSequences*>(out, nullptr);
    *out = new OgaSequences;
  });
}

void OGA_API_CALL OgaDestroySequences(OgaSequences* sequences) { delete sequences; }

size_t OGA_API_CALL OgaSequencesCount(const OgaSequences* sequences) {
  return sequences == nullptr ? 0 : sequences->sequences.size();
}

OgaResult* OGA_API_CALL OgaAppendTokenSequence(const int32_t* token_ptr, size_t token_cnt, OgaSequences* sequences) {
  return Guard([&] {
    auto& list = Require(sequences, "sequences").sequences;
    if (token_cnt > 0) Require(token_ptr, "token_ptr");
    std::vector<int32_t> sequence(token_cnt);  // before any arithmetic on the pointer: the count may be absurd
    std::copy_n(token_ptr, token_cnt, sequence.begin());
    list.push_back(std::move(sequence));
  });
}

OgaResult* OGA_API_CALL OgaAppendTokenToSequence(int32_t token, OgaSequences* sequences, size_t sequence_index) {
  return Guard([&] {
    auto& list = Require(sequences, "sequences").sequences;
    if (sequence_index > list.size()) {
      oga::Throw(oga::StatusCode::kInvalidArgument, oga::Field{"sequence_index"}, "sequence_index is ", sequence_index,
                 "; the list has ", list.size(), " sequences, and an index equal to that starts the next one");
    }
    if (sequence_index == list.size()) {
      list.push_back({token});
    } else {
      list[sequence_index].push_back(token);
    }
  });
}

size_t OGA_API_CALL OgaSequencesGetSequenceCount(const OgaSequences* sequences, size_t sequence_index) {
  const auto* sequence = Find(sequences, sequence_index);
  return sequence == nullptr ? 0 : sequence->size();
}

const int32_t* OGA_API_CALL OgaSequencesGetSequenceData(const OgaSequences* sequences, size_t sequence_index) {
  const auto* sequence = Find(sequences, sequence_index);
  return sequence == nullptr ? nullptr : sequence->data();
}
