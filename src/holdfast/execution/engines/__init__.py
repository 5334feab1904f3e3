"""Where agents run: in this process, in others, on Ray, on Dask."""
