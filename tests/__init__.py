"""The tests. A package only so that `tests` here wins over a package of that name among the installed ones."""
