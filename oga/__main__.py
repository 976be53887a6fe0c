"""``python -m oga`` is the ``oga`` command."""

from oga.cli import main

if __name__ == "__main__":
    main()
