// What is written for AMX, over tiles in plain arithmetic: all but the tiles as a CPU with AMX runs it.
#if defined(__x86_64__)

#include "kernels/attention/pair_units_avx512.h"

#include "kernels/attention/paged_attention_pairs.h"
#include "kernels/product/packed_amx.h"
#include "native/kernels/emulated_tiles.h"

namespace oga::kernels {
extern const PackedVariant kPackedEmulatedTiles;
extern const PairAttentionVariant kPairAttentionEmulatedTiles;

const PackedVariant kPackedEmulatedTiles = AmxEntry<PairLanes, EmulatedTiles>::kTable;
const PairAttentionVariant kPairAttentionEmulatedTiles = PairEntry<TileUnits<EmulatedTiles, PairOps>>::kTable;

}  // namespace oga::kernels

#endif
