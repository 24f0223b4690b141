"""Pages: a plan as one HTML file that people explore, without a server and without a network.

In the order in which data flows: `arrays` puts what is done at each place of a plan into flat
arrays (`vulcan.policies.places` has found it, nothing is computed anew here), `differences` says
where two plans part, `answers` puts what people ask first into sentences, `packing` makes bytes of
it all, and `page` puts these into a file together with the program of the page, `assets`, which is
built from `explorer/` and needs nothing else. `maps` is what a model may show beside its plan. May
import: the root, runtime, bounds, model, policies, certificates.
"""
