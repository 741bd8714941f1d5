"""The tests of Iceberg's suites that cannot pass against a DuckLake, and why. All others must.

The names are those of the reports: the number in brackets is that of the parameters.
"""

_FAILING = {
    "the test asks for another location for a table that exists; DuckLake moves no tables": [
        "TablesTest.testCompleteCreateOrReplaceTransactionReplace",
        "TablesTest.testCompleteReplaceTransaction",
    ],
    "the id of the first spec is 1; 0 is the unpartitioned one, which files may always have": [
        "TablesTest.testCompleteCreateOrReplaceTransactionCreate",
        "TablesTest.testCompleteCreateTable",
        "TablesTest.testCompleteCreateTransaction",
        "TablesTest.testLoadTable",
        "TablesTest.testUpdateTableSpecThenRevert",
    ],
    "the test wants 1 for the sequence number of the first snapshot; it is DuckLake's id": [
        "TablesTest.testCompleteCreateTransactionV2",
    ],
    "of two schemas that a commit adds only the last is kept, and has the next id": [
        "TablesTest.testCompleteCreateTransactionMultipleSchemas",
    ],
    "a column as old as its table is in every file: no initial-default is shown": [
        "TablesTest.testCreateTableWithDefaultColumnValue",
    ],
    "a column that was dropped has its id for ever": [
        "TablesTest.testConcurrentReplaceTransactionSchema",
    ],
    "the test asks for format version 1, and the table has 2": [
        "TablesTest.createTableTransaction(int)[1]",
        "TablesTest.replaceTableTransaction(int)[1]",
    ],
    "the test expires snapshots, which are those of all tables of a DuckLake": [
        "TablesTest.testRemoveUnusedSchemas(boolean)[1]",
        "TablesTest.testRemoveUnusedSchemas(boolean)[2]",
    ],
    "the test counts a spec that no file has; DuckLake has the current one": [
        "TablesTest.testRemoveUnusedSpec(boolean)[1]",
        "TablesTest.testRemoveUnusedSpec(boolean)[2]",
    ],
    "the test removes the metadata file from a local disk": [
        "TablesTest.testLoadTableWithMissingMetadataFile(Path)",
    ],
    "the test registers the metadata file of a table of the lake itself, or that of a view": [
        "TablesTest.testRegisterExistingTable",
        "TablesTest.testRegisterTable",
        "ViewsTest.registerExistingView",
        "ViewsTest.registerTableThatAlreadyExistsAsView",
        "ViewsTest.registerView",
        "ViewsTest.registerViewThatAlreadyExistsAsTable",
    ],
    "the test chooses where the metadata file of a view is; there is none": [
        "ViewsTest.createViewWithCustomMetadataLocation",
    ],
}

_SKIPPED = {
    "a namespace of DuckLake has a name": [
        "TablesTest.createAndDropEmptyNamespace",
        "TablesTest.listNamespacesWithEmptyNamespace",
        "TablesTest.listTablesInEmptyNamespace",
        "TablesTest.namespacePropertiesOnEmptyNamespace",
        "ViewsTest.listViewsInEmptyNamespace",
    ],
    "the test is about a property of the client's catalog, and for other servers": [
        "TablesTest.createTableInUniqueLocation",
    ],
}


def _by_test(tests_of: dict[str, list[str]]) -> dict[str, str]:
    return {test: reason for reason, tests in tests_of.items() for test in tests}


FAILING = _by_test(_FAILING)
"""The reason, by the name of the test."""

SKIPPED = _by_test(_SKIPPED)
"""The reason, by the name of the test."""
