/* The whole C API of oga. base.h states its conventions. */
#ifndef OGA_OGA_H_
#define OGA_OGA_H_

#include "base.h"
#include "capabilities.h"
#include "config.h"
#include "engine.h"
#include "event.h"
#include "event_buffer.h"
#include "log.h"
#include "model.h"
#include "request.h"
#include "result.h"
#include "runtime.h"
#include "sequences.h"
#include "statistics.h"
#include "string_array.h"
#include "tokenizer.h"
#include "turn_options.h"
#include "usage.h"

#endif /* OGA_OGA_H_ */
