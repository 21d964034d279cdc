"""The experiments of the papers on available data: ``python -m bench.papers``.

Shared: `protocol` (parts of an experiment), `runner` (a loop over problems and methods, each in a
process of its own), `tables`, `pictures`, and `figures`, the figures that the papers print, in a
CSV file for each table.

A file for each paper: `gem` (its problems and methods are in gem.json; `choosing` builds models and
chooses hyperparameters, `recordings` makes rows of speech); `ldg`, the thesis's chapters 3 and 4
(by `families` over `splits`, told by `accuracy_tables`; `scattering` makes rows of digits);
`early`, its chapter 5; `mmds` and `mmds_joint`, max-margin shifting on `mmds_data`.
"""
