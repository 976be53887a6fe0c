/* What the fake modules lack, for systems without a shared libpython. */
int Py_IsInitialized(void) { return 0; }
