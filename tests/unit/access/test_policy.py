"""The authorization policy: what it permits, and that an invalid one permits nothing."""

import json

import pytest
from polynya.access.caller import Caller, principal_arn, session_name
from polynya.access.policy import EVERYTHING, AccessResolver, Policy, Rights
from polynya.aws_lambda.events import api_caller, s3_caller
from polynya.runtime.errors import Misconfigured
from polynya.runtime.settings import Config

ANALYST = "arn:aws:iam::111122223333:role/Analyst"
POLICY = {
    "rules": [
        {
            "principals": [ANALYST, "cognito:groups=analysts"],
            "tables": {"main": ["orders", "line*"], "sales_*": ["*"]},
        },
        {"principals": ["client_id=finance-*"], "tables": {"*": ["*"]}},
        {"principals": ["arn:aws:iam::111122223333:user/*"], "tables": {"a.b": ["c*d*e"]}},
        {"principals": ["*"], "tables": {"open": ["*"]}},
    ]
}


def policy(document: object = POLICY) -> Policy:
    return Policy.parse(json.dumps(document))


# (a principal of the caller, namespace, table, whether it may be read)
CASES = [
    (ANALYST, "main", "orders", True),
    (ANALYST, "main", "lines", True),
    (ANALYST, "main", "line", True),
    (ANALYST, "main", "order", False),
    (ANALYST, "main", "orders2", False),
    (ANALYST, "main", "Orders", False),
    (ANALYST, "main", "orders\n", False),
    (ANALYST, "mainx", "orders", False),
    (ANALYST, "sales_eu", "x\ny", True),
    (ANALYST, "sales", "x", False),
    (ANALYST, "open", "x", True),
    (ANALYST + "2", "main", "orders", False),
    ("arn:aws:iam::999999999999:role/Analyst", "main", "orders", False),
    ("cognito:groups=analysts", "main", "orders", True),
    ("cognito:groups=analysts2", "main", "orders", False),
    ("sub=analysts", "main", "orders", False),
    ("client_id=finance-1", "secret", "salaries", True),
    ("client_id=finance", "secret", "salaries", False),
    ("arn:aws:iam::111122223333:user/x", "a.b", "cde", True),
    ("arn:aws:iam::111122223333:user/x", "a.b", "c..d..e", True),
    ("arn:aws:iam::111122223333:user/x", "a.b", "ced", False),
    ("arn:aws:iam::111122223333:user/x", "aXb", "cde", False),
]


@pytest.mark.parametrize(("name", "namespace", "table", "may_read"), CASES)
def test_a_table_is_readable_if_the_rules_allow_it(name, namespace, table, may_read):
    rights = policy().rights([name])
    assert rights.may_read_table((namespace,), table) is may_read


def test_a_namespace_is_readable_as_a_whole_if_every_table_in_it_is():
    rights = policy().rights([ANALYST])
    names = ("main", "sales_eu", "open", "secret", "a.b")
    assert [n for n in names if rights.may_read_namespace((n,))] == ["sales_eu", "open"]


# What a rule has under `tables`; a namespace, a table, and whether it may be read.
NESTED = [
    # All tables of a namespace are also those of every namespace below.
    ({"sales": ["*"]}, "sales", "t", True),
    ({"sales": ["*"]}, "sales europe", "t", True),
    ({"sales": ["*"]}, "sales europe north", "t", True),
    ({"sales": ["*"]}, "other sales", "t", False),
    ({"sales": ["*"]}, "sales.europe", "t", False),
    ({"*": ["*"]}, "sales europe", "t", True),
    # Other patterns are for the namespace alone, `*` in the name of a namespace for one level.
    ({"sales": ["orders"]}, "sales", "orders", True),
    ({"sales": ["orders"]}, "sales europe", "orders", False),
    ({"sales": ["o*"]}, "sales europe", "orders", False),
    ({"sales": ["**"]}, "sales europe", "orders", False),
    ({"*": ["orders"]}, "sales", "orders", True),
    ({"*": ["orders"]}, "sales europe", "orders", False),
    ({"s*": ["*"]}, "sales europe", "t", True),
    ({"s*e": ["*"]}, "sales europe", "t", False),
    # A namespace in another one is an object in its list.
    ({"sales": [{"europe": ["*"]}]}, "sales europe", "t", True),
    ({"sales": [{"europe": ["*"]}]}, "sales europe north", "t", True),
    ({"sales": [{"europe": ["*"]}]}, "sales", "t", False),
    ({"sales": [{"europe": ["*"]}]}, "sales asia", "t", False),
    ({"sales": [{"europe": ["*"]}]}, "europe", "t", False),
    ({"sales": [{"europe": ["*"]}]}, "sales.europe", "t", False),
    ({"sales": ["orders", {"europe": ["customers"]}]}, "sales", "orders", True),
    ({"sales": ["orders", {"europe": ["customers"]}]}, "sales", "customers", False),
    ({"sales": ["orders", {"europe": ["customers"]}]}, "sales europe", "customers", True),
    ({"sales": ["orders", {"europe": ["customers"]}]}, "sales europe", "orders", False),
    ({"*": [{"europe": ["*"]}]}, "sales europe", "t", True),
    ({"*": [{"europe": ["*"]}]}, "sales asia", "t", False),
    ({"sales": [{"*": ["orders"]}]}, "sales europe", "orders", True),
    ({"sales": [{"*": ["orders"]}]}, "sales", "orders", False),
    # A name with a dot is one level, as it was before there were several.
    ({"sales.europe": ["*"]}, "sales.europe", "t", True),
    ({"sales.europe": ["*"]}, "sales europe", "t", False),
    ({"sales.*": ["*"]}, "sales.europe", "t", True),
    ({"sales.*": ["*"]}, "sales", "t", False),
    ({"sales.*": ["*"]}, "sales europe", "t", False),
    ({"sales": [{"a.b": ["*"]}]}, "sales a.b", "t", True),
    ({"sales": [{"a.b": ["*"]}]}, "sales a b", "t", False),
]


@pytest.mark.parametrize(("tables", "namespace", "table", "may_read"), NESTED)
def test_rules_match_levels(tables, namespace, table, may_read):
    found = policy({"rules": [{"principals": ["*"], "tables": tables, "write": tables}]})
    rights, levels = found.rights([]), tuple(namespace.split())
    assert rights.may_read_table(levels, table) is may_read
    assert rights.may_write_table(levels, table) is may_read
    has_all = may_read and not {"orders", "customers"} & {table}
    assert rights.may_read_namespace(levels) is rights.may_write_namespace(levels) is has_all


def test_a_caller_without_principals_has_only_the_rules_for_all_callers():
    rights = policy().rights([])
    assert not rights.may_read_table(("main",), "orders")
    assert rights.may_read_table(("open",), "x")
    assert not policy({"rules": []}).rights([ANALYST]).tables


def test_a_permission_for_all_tables_is_recognised():
    assert policy().rights(["client_id=finance-1"]).all_tables and EVERYTHING.all_tables
    assert not policy().rights([ANALYST]).all_tables


def test_files_may_be_added_from_the_directories_of_the_rules_of_a_caller():
    rule = {"tables": {"*": ["*"]}, "write": {"*": ["*"]}}
    rules = [
        {"principals": ["a=1"], **rule, "add_files": ["s3://b/x/", "s3://b/y/"]},
        {"principals": ["a=*"], **rule, "add_files": ["s3://b/y/", "s3://c/"]},
        {"principals": ["*"], **rule},
    ]
    found = policy({"rules": rules})
    assert found.rights(["a=1"]).file_directories == ("s3://b/x/", "s3://b/y/", "s3://c/")
    assert found.rights(["a=2"]).file_directories == ("s3://b/y/", "s3://c/")
    assert found.rights([]).file_directories == EVERYTHING.file_directories == ()


def hiding(**columns: list[str]) -> list[object]:
    """What a rule has for a namespace: tables of which columns are hidden."""
    return [{table: {"hidden_columns": names} for table, names in columns.items()}]


def hidden(rights: Rights, namespace: str, *names: str) -> set[str]:
    return set(rights.hidden_columns([(tuple(namespace.split()), name) for name in names]))


def test_a_rule_permits_a_table_and_hides_its_columns():
    rules = [{"principals": ["*"], "tables": {"main": ["open", *hiding(people=["pay", "Age"])]}}]
    rights = policy({"rules": rules}).rights([])
    assert rights.may_read_table(("main",), "people") and rights.may_read_table(("main",), "open")
    assert not rights.may_read_table(("main",), "other")
    assert hidden(rights, "main", "people") == {"pay", "Age"}
    assert hidden(rights, "main", "open") == hidden(rights, "other", "people") == set()
    assert policy({"rules": rules}).hides_columns and not policy().hides_columns


def test_what_one_rule_hides_no_other_rule_shows():
    rules = [
        {"principals": ["a=1"], "tables": {"main": hiding(people=["pay"])}},
        {"principals": ["a=*"], "tables": {"main": hiding(people=["age"])}},
        {
            "principals": ["*"],
            "tables": {"*": ["*"]},
            "write": {"*": ["*"]},
            "add_files": ["s3://b/x/"],
        },
    ]
    found = policy({"rules": rules})
    rights = found.rights(["a=1"])
    assert hidden(rights, "main", "people") == {"pay", "age"}
    assert hidden(found.rights(["a=2"]), "main", "people") == {"age"}
    assert not rights.all_tables and not rights.file_directories
    assert not rights.may_write_table(("main",), "people")
    assert not rights.may_write_table(("main",), "PEOPLE")
    assert rights.may_write_table(("main",), "others")
    others = found.rights(["b=1"])
    assert others.all_tables and others.file_directories and not others.hidden
    assert others.may_write_table(("main",), "people")


def test_a_table_has_the_columns_of_all_its_names_in_any_letter_case():
    tables = {"main": hiding(People=["pay"]), "s*": [{"europe": hiding(people=["age"])}]}
    rights = policy({"rules": [{"principals": ["*"], "tables": tables}]}).rights([])
    assert hidden(rights, "MAIN", "peOple") == hidden(rights, "main", "new", "people") == {"pay"}
    assert hidden(rights, "sales Europe", "people") == {"age"}
    for namespace in ("sales", "sales asia", "sales europe north", "europe"):
        assert hidden(rights, namespace, "people") == set()


def test_an_asterisk_reaches_namespaces_at_all_levels():
    """As it does where it permits all tables."""
    tables = {"*": ["*", *hiding(people=["age"])]}
    rights = policy({"rules": [{"principals": ["*"], "tables": tables}]}).rights([])
    assert rights.may_read_table(("hr", "north"), "people")
    assert hidden(rights, "hr", "people") == hidden(rights, "hr north", "people") == {"age"}


WRONG = [
    "",
    *(
        f'{{"rules": [{{"principals": ["*"], {text}}}]}}'
        for text in (
            '"tables": {"main": [{"t": {}}]}',
            '"tables": {"main": [{"t": {"hidden_columns": []}}]}',
            '"tables": {"main": [{"t": {"hidden_columns": "a"}}]}',
            '"tables": {"main": [{"t": {"hidden_columns": [""]}}]}',
            '"tables": {"main": [{"t": {"hidden_columns": [7]}}]}',
            '"tables": {"main": [{"t": {"hidden_columns": ["a*"]}}]}',
            '"tables": {"main": [{"t*": {"hidden_columns": ["a"]}}]}',
            '"tables": {"main": [{"*": {"hidden_columns": ["a"]}}]}',
            '"tables": {"main": [{"t": {"hidden_columns": ["a"], "rows": []}}]}',
            '"tables": {"main": [{"t": {"columns": ["a"]}}]}',
            '"tables": {"main": {"hidden_columns": ["a"]}}',
            '"tables": {"main": {"t": {"hidden_columns": ["a"]}}}',
            '"tables": {}, "write": {"main": [{"t": {"hidden_columns": ["a"]}}]}',
            '"tables": {}, "hidden_columns": {"main": ["a"]}',
        )
    ),
    "[]",
    "{}",
    '{"rules": {}}',
    '{"rules": [], "Rules": []}',
    '{"rules": [[]]}',
    '{"rules": [{"principals": ["*"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "deny": {}}]}',
    '{"rules": [{"principals": ["*"], "write": {"*": ["*"]}}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "writes": {}}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "write": ["*"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "write": null}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "write": true}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "write": {"main": "*"}}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "write": {"main": [7]}}]}',
    '{"rules": [{"principals": ["*"], "tables": {"a": [{"b": "*"}]}}]}',
    '{"rules": [{"principals": ["*"], "tables": {"a": [{"b": [[]]}]}}]}',
    '{"rules": [{"principals": ["*"], "tables": {"a": [{"b": ["t"], "b": ["*"]}]}}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "write": {}, "write": {"*": ["*"]}}]}',
    '{"rules": [], "write": {"*": ["*"]}}',
    '{"rules": [], "add_files": ["s3://a/"]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": "s3://a/"}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": [7]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["s3://"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["s3://a/b"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["s3://a/../b/"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["s3://a//b/"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["s3a://a/"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["https://a/b/"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {}, "add_files": ["/a/"]}]}',
    '{"rules": [{"principals": "*", "tables": {}}]}',
    '{"rules": [{"principals": [1], "tables": {}}]}',
    '{"rules": [{"principals": [""], "tables": {}}]}',
    '{"rules": [{"principals": ["Analyst"], "tables": {}}]}',
    '{"rules": [{"principals": ["*=admin"], "tables": {}}]}',
    '{"rules": [{"principals": ["*"], "tables": ["*"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {"main": "*"}}]}',
    '{"rules": [{"principals": ["*"], "tables": {"main": [null]}}]}',
    # A JSON parser takes the last one of two equal keys.
    '{"rules": [], "rules": [{"principals": ["*"], "tables": {"*": ["*"]}}]}',
    '{"rules": [{"principals": [], "tables": {}, "principals": ["*"]}]}',
    '{"rules": [{"principals": ["*"], "tables": {"main": ["a"], "main": ["*"]}}]}',
    '{"rules": [{"principals": ["*"], "tables": {"main": ["a"], "m\\u0061in": ["*"]}}]}',
    '{"rules": [], "list_claims": [], "list_claims": ["username"]}',
    '{"rules": [], "list_claims": "cognito:groups"}',
    '{"rules": [], "list_claims": [null]}',
    '{"list_claims": []}',
    '{"rules": ' + "[" * 100_000,
]


@pytest.mark.parametrize("document", WRONG, ids=range(len(WRONG)))
def test_an_invalid_policy_is_refused_as_a_whole(document):
    with pytest.raises(Misconfigured, match="nothing is served"):
        Policy.parse(document)


# The principals of a caller

SESSION = "arn:aws:sts::111122223333:assumed-role/Analyst/me"
JWT = {
    "sub": "x",
    "cognito:groups": "[analysts staff]",
    "scope": "ice/read ice/all",
    "arn:aws:iam::111122223333:role/Admin": "1",
    "custom:team": "[a b",
    "sub=x": "admin",
}


@pytest.mark.parametrize(
    ("authorizer", "names"),
    [
        (None, []),
        ({}, []),
        ({"iam": {"userArn": SESSION}}, [ANALYST]),
        ({"iam": {"userArn": "arn:aws:iam::1:user/p/me"}}, ["arn:aws:iam::1:user/p/me"]),
        ({"iam": {"userArn": None}}, []),
        (
            {"jwt": {"claims": JWT, "scopes": None}},
            [
                "sub=x",
                "cognito:groups=analysts",
                "cognito:groups=staff",
                "scope=ice/read ice/all",
                "scope=ice/read",
                "scope=ice/all",
                "custom:team=[a b",
            ],
        ),
        ({"lambda": {"userArn": SESSION}}, []),
    ],
)
def test_an_api_caller_has_the_principals_of_its_authorizer(authorizer, names):
    assert api_caller({"authorizer": authorizer}).principals({"cognito:groups"}) == names


ISSUER = {"aud": "lake", "iss": "https://idp.example/", "exp": "1"}
IDENTITIES = [
    (None, ""),
    ({"iam": {"userArn": SESSION}}, ANALYST),
    ({"jwt": {"claims": {}}}, ""),
    ({"jwt": {"claims": ISSUER}}, "iss=https://idp.example/"),
    ({"jwt": {"claims": ISSUER | {"sub": "a"}}}, "iss=https://idp.example/ sub=a"),
    (
        {"jwt": {"claims": {"client_id": "c", "sub": "auth0|a"} | ISSUER}},
        "iss=https://idp.example/ sub=auth0|a client_id=c",
    ),
    # No subject looks like another caller.
    (
        {"jwt": {"claims": ISSUER | {"sub": "a client_id=c\n%20"}}},
        "iss=https://idp.example/ sub=a%20client_id=c%0A%2520",
    ),
]


@pytest.mark.parametrize(("authorizer", "identity"), IDENTITIES)
def test_an_api_caller_is_known_by_the_claims_that_say_who_it_is(authorizer, identity):
    assert api_caller({"authorizer": authorizer}).identity == identity


# (claim, its text in API Gateway's event, the values that match if `groups` is declared a list).
# An HTTP API writes the token's ["a", "b"] as [a b], and a text unchanged.
CLAIMS = [
    ("groups", "[a b]", ["a", "b"]),
    ("groups", "[admin]", ["admin"]),
    ("groups", "[]", []),
    ("groups", "[interns,finance]", ["interns,finance"]),
    ("groups", "[[x] y]", ["[x]", "y"]),
    ("groups", "admin", ["admin"]),
    ("groups", "a b", ["a b"]),
    ("groups", "a,b", ["a,b"]),
    ("groups", "[a b", ["[a b"]),
    ("username", "[admin]", ["[admin]"]),
    ("username", "[x admin]", ["[x admin]"]),
    ("username", "x admin", ["x admin"]),
    ("username", "x,admin", ["x,admin"]),
    ("scope", "ice/read ice/all", ["ice/read ice/all", "ice/read", "ice/all"]),
    ("scope", "ice/read,ice/all", ["ice/read,ice/all"]),
    ("scp", "[ice/all]", ["[ice/all]"]),
    ("exp", "1679571478", ["1679571478"]),
]


@pytest.mark.parametrize(
    ("claim", "text", "values"), CLAIMS, ids=[f"{c[0]}={c[1]}" for c in CLAIMS]
)
def test_only_claims_that_are_declared_lists_have_several_values(claim, text, values):
    caller = Caller(claims={claim: text})
    assert caller.principals({"groups"}) == [f"{claim}={value}" for value in values]


def test_the_policy_declares_the_claims_that_are_lists():
    document = POLICY | {"list_claims": ["cognito:groups"]}
    caller = Caller(claims={"cognito:groups": "[analysts]"})
    for source, may_read in ((POLICY, False), (document, True)):
        rights = readers(json.dumps(source), [0.0]).catalog_rights(caller)
        assert rights.may_read_table(("main",), "orders") is may_read


def test_an_s3_caller_has_the_principals_of_its_role():
    assert s3_caller({"arn": SESSION}).principals() == [ANALYST]
    assert s3_caller({}).principals() == []


def test_the_name_of_a_session_is_no_principal():
    """The caller who assumes a role chooses the session name."""
    arn = "arn:aws:sts::1:assumed-role/Low/arn:aws:iam::1:role/Admin"
    assert principal_arn(arn) == "arn:aws:iam::1:role/Low"


@pytest.mark.parametrize(
    ("arn", "role", "session"),
    [
        (SESSION, ANALYST, "me"),
        (SESSION, "arn:aws:iam::111122223333:role/with/path/Analyst", "me"),
        (SESSION, "arn:aws:iam::111122223333:role/Other", None),
        (SESSION, "arn:aws:iam::999999999999:role/Analyst", None),
        (ANALYST, ANALYST, None),
    ],
)
def test_the_role_and_session_are_read_from_an_arn(arn, role, session):
    assert session_name(arn, role) == session


# The policy is read at run time


def readers(source: str, times: list[float]) -> AccessResolver:
    environ = {"DATABASE_URL": "u", "VIRTUAL_BUCKET": "b", "AUTHORIZATION": source}
    return AccessResolver(Config.from_env(environ), clock=lambda: times[0])


def test_a_revoked_permission_is_gone_after_a_minute(monkeypatch):
    documents = [json.dumps(POLICY), '{"rules": []}', "{"]
    monkeypatch.setattr(
        "polynya.storage.operator_documents.ssm_parameter", lambda *_: documents.pop(0)
    )
    times = [1000.0]
    asked = readers("ssm:/p", times)
    assert asked.file_rights(Caller(SESSION)).may_read_table(("main",), "orders")
    times[0] += 59
    assert asked.file_rights(Caller(SESSION)).may_read_table(("main",), "orders")
    times[0] += 2
    assert not asked.file_rights(Caller(SESSION)).may_read_table(("main",), "orders")
    times[0] += 61
    with pytest.raises(Misconfigured):
        asked.file_rights(Caller(SESSION))
    with pytest.raises(IndexError):  # it is read again at once, and the old one is not used
        asked.file_rights(Caller(SESSION))


VENDED = {
    "VENDING_ROLE": "arn:aws:iam::111122223333:role/a/path/Vended",
    "WRITER_ROLE": "arn:aws:iam::111122223333:role/Writer",
}
UUID = "01a1fad5-de06-72d5-96d5-394e01873100"

# (the role of a session, its name, whether it reads the table of its name, and all tables)
SESSIONS = [
    ("Vended", f"polynya-{UUID}", True, False),
    ("Writer", f"polynya-{UUID}", True, False),
    ("Vended", "me", False, False),
    ("Writer", "me", False, False),
    ("Analyst", f"polynya-{UUID}", True, True),  # there is no policy
]


@pytest.mark.parametrize(("role", "session", "reads_one", "reads_all"), SESSIONS)
def test_behind_the_access_point_vended_credentials_read_one_table(
    role, session, reads_one, reads_all
):
    environ = {"DATABASE_URL": "u", "VIRTUAL_BUCKET": "b"} | VENDED
    arn = f"arn:aws:sts::111122223333:assumed-role/{role}/{session}"
    rights = AccessResolver(Config.from_env(environ)).file_rights(Caller(arn))
    assert rights.may_read_table(("main",), "t") is reads_one
    assert (reads_one and rights.table_uuid is None) is reads_all
    assert rights.table_uuid in (None, UUID) and not rights.may_write_table(("main",), "t")


ISSUERS = {
    "rules": [
        {"principals": ["sub=ada"], "tables": {"first": ["*"]}},
        {"principals": ["sub=ada"], "issuers": ["https://b"], "tables": {"second": ["*"]}},
        {"principals": ["*"], "issuers": ["https://a"], "tables": {"of_a": ["*"]}},
        {"principals": ["*"], "tables": {"public": ["*"]}},
    ]
}


@pytest.mark.parametrize(
    ("caller", "namespaces"),
    [
        (Caller(claims={"iss": "https://a", "sub": "ada"}), {"first", "of_a", "public"}),
        (
            Caller(claims={"iss": "https://b", "sub": "ada"}, is_of_other_issuer=True),
            {"second", "public"},
        ),
        (
            Caller(claims={"iss": "https://c", "sub": "ada"}, is_of_other_issuer=True),
            {"public"},
        ),
        (Caller(claims={"token": "ada"}), {"public"}),
        # A claim that looks like another one.
        (
            Caller(claims={"iss": "https://c", "x": "sub=ada", "y": ["iss=https://b"]}),
            {"public"},
        ),
    ],
)
def test_a_rule_is_about_the_tokens_of_an_issuer(caller, namespaces):
    rights = Policy.parse(json.dumps(ISSUERS)).rights(
        caller.principals(), is_of_other_issuer=caller.is_of_other_issuer
    )
    every = ("first", "second", "of_a", "public")
    assert {name for name in every if rights.may_read_namespace((name,))} == namespaces


def test_a_claim_that_is_a_list_matches_by_each_value():
    caller = Caller(claims={"groups": ["a b", "c"], "scope": "read write", "sub": "[c]"})
    assert caller.principals() == [
        *("groups=a b", "groups=c", "scope=read write", "scope=read", "scope=write", "sub=[c]"),
    ]


@pytest.mark.parametrize("issuers", ["https://a", [1], {}])
def test_issuers_are_a_list_of_texts(issuers):
    rule = {"principals": ["*"], "tables": {}, "issuers": issuers}
    with pytest.raises(Misconfigured):
        Policy.parse(json.dumps({"rules": [rule]}))
