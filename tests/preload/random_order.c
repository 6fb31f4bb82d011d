/* Allocates and frees large blocks at random, in one thread; prints the number of refused requests. */

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    void *blocks[64] = {0};
    int refused = 0;
    srand(count > 1 ? atoi(arguments[1]) : 1);
    for (int step = 0; step < 3000; step++) {
        int place = rand() % 64;
        if (blocks[place]) {
            free(blocks[place]);
            blocks[place] = NULL;
        } else if (!(blocks[place] = malloc(128 * 1024 + rand() % 1000000))) {
            refused++;
        }
    }
    printf("%d\n", refused);
    return 0;
}
