"""Where rows are worked on: this process, worker processes, a dask cluster; results in input order."""
