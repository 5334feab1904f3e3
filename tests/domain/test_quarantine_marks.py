"""Names of what is set aside."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ids import check_file_name
from holdfast.domain.quarantine_marks import REFUSED, mark_name, workflow_prefix


@given(st.text(min_size=1).filter(lambda text: text.isprintable()), st.integers(1, 10**9))
def test_whatever_a_workflow_is_called_the_mark_has_a_name_that_a_store_takes(workflow_id, sequence):
    check_file_name(mark_name(workflow_id, sequence))
    assert mark_name(workflow_id, sequence).startswith(REFUSED + workflow_prefix(workflow_id))
