"""Who may write: what the policy's key `write` permits, and what the refusal says."""

import json
from dataclasses import replace

import pytest
from polynya.access.authorized_lake import check_may_write_namespace, check_may_write_table
from polynya.access.policy import EVERYTHING, Policy
from polynya.runtime.errors import Forbidden

WRITER = "arn:aws:iam::111122223333:role/Writer"
LOADER = "arn:aws:iam::111122223333:role/Loader"
RULES = [
    {
        "principals": [WRITER],
        "tables": {"main": ["orders", "customers"], "sales_*": ["*"], "hr": ["*"]},
        "write": {"main": ["orders", "secret"], "sales_eu": ["*"], "other": ["*"]},
    },
    {"principals": [WRITER], "tables": {}, "write": {"main": ["cust*"], "hr": ["s*"]}},
    {"principals": [LOADER], "tables": {"a": ["x"]}, "write": {"*": ["*"]}},
    {"principals": ["group=all"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}},
    {"principals": ["group=readers"], "tables": {"*": ["*"]}},
    {"principals": ["group=none"], "tables": {"*": ["*"]}, "write": {}},
]
WRITING = Policy.parse(json.dumps({"rules": RULES}))

# (the principals of the caller, namespace, table, what the caller lacks: a table that cannot be
# read does not exist, so that writing it takes both keys)
TABLES_TO_WRITE = [
    ([WRITER], "main", "orders", None),
    ([WRITER], "main", "orders2", "`tables` and `write`"),
    ([WRITER], "main", "customers", None),  # one rule permits to read it, another to write it
    ([WRITER], "main", "cust", "`tables` and `write`"),
    ([WRITER], "main", "secret", "`tables` and `write`"),
    ([WRITER], "sales_eu", "any", None),
    ([WRITER], "sales_us", "any", "`write`"),
    ([WRITER], "hr", "staff", None),
    ([WRITER], "hr", "people", "`write`"),
    ([WRITER], "other", "any", "`tables` and `write`"),
    ([LOADER], "a", "x", None),
    ([LOADER], "a", "y", "`tables` and `write`"),
    ([LOADER, "group=readers"], "a", "y", None),
    (["group=all"], "any", "any\n", None),
    (["group=readers"], "any", "any", "`write`"),
    (["group=none"], "any", "any", "`write`"),
    ([], "main", "orders", "`tables` and `write`"),
]


@pytest.mark.parametrize(("names", "namespace", "table", "lacks"), TABLES_TO_WRITE)
def test_a_table_is_writable_if_the_rules_allow_to_read_and_to_write_it(
    names, namespace, table, lacks
):
    rights = WRITING.rights(names)
    assert rights.may_write_table((namespace,), table) is (lacks is None)
    if lacks is None:
        check_may_write_table(rights, (namespace,), table)
        return
    with pytest.raises(Forbidden, match=f"the keys? {lacks} of a rule of the auth") as error:
        check_may_write_table(rights, (namespace,), table)
    assert f"{namespace}.{table}" in str(error.value)


# (the principals of the caller, namespace, what the caller lacks)
NAMESPACES_TO_WRITE = [
    ([WRITER], "main", "`tables` and `write`"),
    ([WRITER], "sales_eu", None),
    ([WRITER], "sales_us", "`write`"),
    ([WRITER], "hr", "`write`"),
    ([WRITER], "other", "`tables` and `write`"),
    ([LOADER], "a", "`tables` and `write`"),
    (["group=all"], "new", None),
    (["group=readers"], "new", "`write`"),
    ([], "new", "`tables` and `write`"),
]


@pytest.mark.parametrize(("names", "namespace", "lacks"), NAMESPACES_TO_WRITE)
def test_a_namespace_is_writable_if_every_table_in_it_is(names, namespace, lacks):
    rights = WRITING.rights(names)
    assert rights.may_write_namespace((namespace,)) is (lacks is None)
    if lacks is None:
        check_may_write_namespace(rights, (namespace,))
        return
    with pytest.raises(Forbidden, match=f"the keys? {lacks} of a rule of the auth") as error:
        check_may_write_namespace(rights, (namespace,))
    assert f"namespace {namespace}:" in str(error.value)


def test_nobody_may_write_without_a_rule_or_with_vended_credentials():
    everything = WRITING.rights(["group=all"])
    vended = replace(everything, table_uuid="01a1fad5-de06-72d5-96d5-394e01873100")
    for rights in (EVERYTHING, WRITING.rights(["group=readers"]), vended):
        assert rights.may_read_table(("main",), "t") and rights.may_read_namespace(("main",))
        assert not rights.may_write_table(("main",), "t")
        assert not rights.may_write_namespace(("main",))


def test_the_refusal_says_the_rule_of_a_namespace_in_another_one():
    with pytest.raises(Forbidden, match=r'namespace a."b.c":') as error:
        check_may_write_namespace(EVERYTHING, ("a", "b.c"))
    assert '`"a": [{"b.c": ["*"]}]`' in str(error.value)
    with pytest.raises(Forbidden, match=r'no right to write a."b.c".t:'):
        check_may_write_table(EVERYTHING, ("a", "b.c"), "t")
