"""The experiments of the papers on data that is at hand: ``python -m bench.papers``.

What every experiment goes through: `protocol` (what one is made of), `runner` (one loop over
problems and methods, and all that is printed and written), `measuring` (a method in a process of
its own), `choosing` (hyperparameters on held-out rows), `tables`, `pictures`, and `figures`, which
has what the papers print, a CSV file a table.

The GEM paper: `gem` and `defaults`, by `estimators`, told by `gem_report`; `recordings` makes rows
of speech. The thesis, chapters 3 and 4: `ldg` and `ldg_transfer`, by `families` over `splits` with
`three_nearest`, told by `accuracy_tables`; chapter 5: `early`, told by `early_tables`. The paper on
max-margin shifting: `mmds`, `mmds_faces`, by `mmds_shifting` on `mmds_data`.
"""
