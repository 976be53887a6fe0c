/* What the fake modules lack. */
int Py_SymbolOfTheTests(void) { return 42; }
