/* An extension module of a Python package, as the loader sees one: it refers to a symbol of libpython. */
extern int Py_IsInitialized(void);

int module_answer(void) { return Py_IsInitialized(); }
