// A library that needs no other, for the tests of the system's loader.
int oga_test_leaf(void) { return 42; }
