// Runs a battery of TestU01 over the words that it reads: see docs/adr/0022. With an argument other
// than "SmallCrush" or "Crush", it runs BigCrush.
//
//   cc -O2 distributed/pjrt/testdata/testu01.c -ltestu01 -lprobdist -lmylib -lm -o testu01
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bbattery.h>
#include <unif01.h>

static unsigned int word(void) {
  uint32_t w;
  if (fread_unlocked(&w, sizeof w, 1, stdin) != 1) {
    fputs("testu01: the words have ended\n", stderr);
    exit(1);
  }
  return w;
}

int main(int argc, char **argv) {
  const char *battery = argc > 1 ? argv[1] : "SmallCrush";
  unif01_Gen *gen = unif01_CreateExternGenBits("gonbatch", word);
  if (strcmp(battery, "SmallCrush") == 0) bbattery_SmallCrush(gen);
  else if (strcmp(battery, "Crush") == 0) bbattery_Crush(gen);
  else bbattery_BigCrush(gen);
  unif01_DeleteExternGenBits(gen);
  return 0;
}
