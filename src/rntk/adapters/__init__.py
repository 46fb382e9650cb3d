"""rntk inside other libraries of time series: `adapters.aeon` and `adapters.sktime`.

Their data, in their layout, goes in; their kind of estimator comes out, and passes their own checks. Each module needs
its library (``pip install "rntk[aeon]"``, ``pip install "rntk[sktime]"``) and is imported by name, so that neither is
loaded for the other.
"""
