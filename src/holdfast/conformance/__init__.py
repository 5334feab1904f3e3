"""The suite every store must pass, shipped for authors of other stores.

Derive a class whose name begins with `Test` from `conformance.store.StoreConformance`, give it `open_store`
(and `reopen`, if the store outlives its closing), and run pytest.
"""
