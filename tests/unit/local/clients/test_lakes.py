from polynya_local.clients.native import filled_in

CATALOG = "postgres:dbname=d host=it's"


def test_placeholders_are_replaced():
    text = "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'); -- {{DATA_PATH}}_ext"
    assert filled_in(text, CATALOG, "s3://b/it's") == (
        "ATTACH 'ducklake:postgres:dbname=d host=it''s' AS lake "
        "(DATA_PATH 's3://b/it''s'); -- s3://b/it''s_ext"
    )


def test_a_line_is_repeated_with_its_number():
    text = "A;\n-- @repeat 2\nINSERT {{i}};\nB;\n"
    assert filled_in(text, CATALOG, "") == "A;\nINSERT 1;\nINSERT 2;\nB;\n"
