/* Lets C sources written for the public Oga engine API compile against oga. */
#include "oga/oga.h"
