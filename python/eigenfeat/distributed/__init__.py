"""The same estimators on Dask arrays and data frames, with the results of one machine.

Rows stay on their workers. Only the results of `eigenfeat.samples.reductions` for the partitions
are sent, and merged in a tree whose shape depends on the partitions alone: runs agree bit for bit,
for any workers, and if workers are lost during a run. The current scheduler of Dask does the work:
that of the current `distributed.Client`, or threads.

The estimators are subclasses of those of the same names in `eigenfeat`, with the same parameters.
Fitted attributes are ordinary arrays, and the methods also accept NumPy and SciPy rows. Dask
collections give lazy Dask arrays with the same chunks along the rows. Labels and weights may be
arrays of either kind or, with a data frame, names of its columns. Every pass of a fit goes through
all rows: persist rows that fit into the workers' memory.
"""

import lazy_loader

# Imported when they are first asked for: workers start without scikit-learn, which none of a fit's
# tasks needs and which takes longer to import than all the rest.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
