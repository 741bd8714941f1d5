from polynya_local.clients.lakes import _filled_in
from polynya_local.processes.postgres import Database

DATABASE = Database("h", 5432, "u", "d")


def test_placeholders_are_replaced():
    text = "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'); -- {{DATA_PATH}}_ext"
    assert _filled_in(text, DATABASE, "s3://b/it's") == (
        "ATTACH 'ducklake:postgres:dbname=d host=h port=5432 user=u' AS lake "
        "(DATA_PATH 's3://b/it''s'); -- s3://b/it''s_ext"
    )


def test_a_line_is_repeated_with_its_number():
    text = "A;\n-- @repeat 2\nINSERT {{i}};\nB;\n"
    assert _filled_in(text, DATABASE, "") == "A;\nINSERT 1;\nINSERT 2;\nB;\n"
