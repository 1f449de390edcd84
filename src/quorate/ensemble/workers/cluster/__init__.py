"""Workers on other machines: Dask brings tasks to them, and private values pass through files of the owner."""
