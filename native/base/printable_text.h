// Foreign bytes (paths, JSON strings) made fit for a message: always valid UTF-8, always one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace oga {

// `bytes` with control characters and everything that is not UTF-8 written as \xNN, byte by byte. A path that is not
// UTF-8 stays recognisable and the message stays decodable for every caller.
std::string Printable(std::string_view bytes);

// Printable between single quotes, cut after about `max_bytes`, so that a wrong value cannot flood a message.
std::string Quoted(std::string_view bytes, size_t max_bytes = 4096);

}  // namespace oga
