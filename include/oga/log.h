/* Where liboga's own messages go. */
#ifndef OGA_LOG_H_
#define OGA_LOG_H_

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/**
 * Turns a log channel on or off.
 *
 * :param name: "enabled" (everything), "warning" (on at start) or "info" (off at start)
 * :param value: true turns the channel on
 *
 * InvalidArgument names an unknown channel and lists the known ones. Any thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetLogBool(const char* name, bool value);

/**
 * Sends log lines to a function instead of standard error.
 *
 * :param callback: called with one line (not newline-terminated) and its length in bytes, on whichever thread logs;
 *     it must not call back into oga. NULL restores standard error.
 *
 * Any thread.
 */
OGA_EXPORT OgaResult* OGA_API_CALL OgaSetLogCallback(void (*callback)(const char* string, size_t length));

#if defined(__cplusplus)
}
#endif

#endif /* OGA_LOG_H_ */
