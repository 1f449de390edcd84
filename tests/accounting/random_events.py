"""Random events for the property tests of this room."""

from hypothesis import strategies as st

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Parallel,
    PureDP,
    Repeated,
)

sigmas = st.floats(0.5, 200.0)
sensitivities = st.sampled_from([1.0, 2**0.5, 3**0.5])

leaf_events = st.one_of(
    st.builds(Gaussian, sigmas, st.floats(0.1, 3.0)),
    st.builds(DiscreteGaussian, sigmas, st.one_of(sensitivities, st.floats(0.1, 3.0))),
    st.builds(DiscreteLaplace, st.floats(1.0, 100.0), st.sampled_from([1.0, 2.0])),
    st.builds(PureDP, st.floats(0.0, 2.0)),
    st.builds(ApproxDP, st.floats(0.0, 2.0), st.floats(0.0, 1e-6)),
)
events = st.recursive(
    leaf_events,
    lambda inner: st.one_of(
        st.builds(Repeated, inner, st.integers(0, 5)),
        st.lists(inner, max_size=3).map(lambda members: Composed(tuple(members))),
        st.lists(inner, max_size=3).map(lambda members: Parallel(tuple(members))),
    ),
    max_leaves=5,
)
