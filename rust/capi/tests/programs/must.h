/* Calls that must succeed, for the programs of this folder. */

#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "allotment.h"

/* Ends the program unless the call of a line succeeded. */
static inline void must_at(int line, allotment_status status) {
    if (status != ALLOTMENT_OK) {
        fprintf(stderr, "line %d: %s\n", line, allotment_last_error());
        exit(1);
    }
}
#define MUST(call) must_at(__LINE__, call)

#endif
